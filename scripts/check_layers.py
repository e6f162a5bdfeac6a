#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail when a file includes a module that its module may not include, or a library that its folder
may not use, or when files include each other in a circle.

docs/layers.txt lists which modules a module may include. VENDORS lists which source folder or file
may include a library's headers. Those headers never appear in a public header, so that no other
module is compiled against them. The module `kernels` is the folder of that name. A header and its
source are one room; a circle is a set of rooms each of which includes all others, directly or not.
"""
import os
import pathlib
import re
import sys

VENDORS = {
    r"mpi\.h": ["comm"],
    r"dnnl(\.h(pp)?|_.*)|oneapi/dnnl/.*": ["device/cpu"],
    r"hwloc.*": ["device"],
    r"omp\.h": ["device"],
    r"yaml-cpp/.*": ["config"],
    r"jpeglib\.h|jerror\.h|turbojpeg\.h": ["data"],
    r"hdf5.*|H5.*": ["data/climate"],
    r"zlib\.h": ["data"],
    r"pugixml\.hpp": ["data"],
    r"openssl/.*": ["base", "storage"],
    r"spdlog/.*": ["base"],
    r"CLI/.*": ["cli/command_line.cpp"],
    r"nccl\.h": ["comm/nccl"],
    r"cudnn_frontend.*": ["device/cuda/cudnn_graphs.cpp"],
    r"cudnn(?!_frontend).*": ["device/cuda"],
    r"cublas.*": ["device/cuda"],
    r"cuda_runtime(_api)?\.h": ["device/cuda", "comm/nccl", "kernels"],
}
PUBLIC_VENDORS = {"spdlog/.*"}  # allowed in public headers, too
TREES = {"include/hpcai": "", "src": "", "kernels": "kernels/"}  # tree -> prefix of the module paths in it
SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".h"}


def read_layers(path):
    """module -> modules that it may include, with itself."""
    may_see = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        module, seen = line.split(":")
        below = set(seen.split())
        unknown = below - may_see.keys()
        if unknown:
            sys.exit(f"{path}: {module} names modules that are not listed above it: {unknown}")
        may_see[module.strip()] = below | {module.strip()}
    return may_see


def is_inside(file, corner):
    return file == corner or file.startswith(corner + "/")


def problem_of(header, file, is_public, may_see):
    """The error of including `header` from a `file` of a tree, or None."""
    module = file.split("/")[0]
    own = re.match(r"(?:hpcai/(\w+)|(kernels))/", header)
    if own:
        included = own[1] or own[2]
        allowed = included in may_see.get(module, set())
        return None if allowed else f"{module} may not include {included}"
    if header.startswith("../"):
        return f"{header}: include across folders by hpcai/<module>/..."
    for pattern, corners in VENDORS.items():
        if not re.fullmatch(pattern, header):
            continue
        if not any(is_inside(file, corner) for corner in corners):
            return f"{header} belongs in {' and '.join(corners)}"
        if is_public and pattern not in PUBLIC_VENDORS:
            return f"{header} in a public header"
    return None


def problems_of_tree(root, tree, may_see):
    base = root / tree
    for path in sorted(base.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        file = TREES[tree] + path.relative_to(base).as_posix()
        place = os.path.relpath(path)
        if file.split("/")[0] not in may_see:
            yield f"{place}: its folder is no module of docs/layers.txt"
            continue
        for number, text in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', text)
            problem = found and problem_of(found[1], file, tree.startswith("include"), may_see)
            if problem:
                yield f"{place}:{number}: {problem}"


def is_from_top(root, name):
    """True if an included `name` begins with a module, not in the folder of the including file."""
    return name.startswith("kernels/") or (root / "include/hpcai" / name).exists()


def included_rooms(root):
    """room -> rooms that its files include; a room is a path below a tree, without suffix."""
    found = {}
    for tree, prefix in TREES.items():
        base = root / tree
        for path in sorted(base.rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            folder = pathlib.PurePath(prefix) / path.relative_to(base).parent
            headers = re.findall(r'^\s*#\s*include\s*[<"](?:hpcai/)?([^">]+)', path.read_text(), re.M)
            places = {name if is_from_top(root, name) else os.path.normpath(folder / name) for name in headers}
            room = (folder / path.stem).as_posix()
            found.setdefault(room, set()).update(name.rsplit(".", 1)[0] for name in places)
    return {room: seen & found.keys() for room, seen in found.items()}


def reached_from(room, included):
    reached, open_rooms = set(), [room]
    while open_rooms:
        for seen in included[open_rooms.pop()] - reached:
            reached.add(seen)
            open_rooms.append(seen)
    return reached


def circles(included):
    reached = {room: reached_from(room, included) for room in included}
    return {frozenset(one for one in reached[room] if room in reached[one]) for room in reached}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    may_see = read_layers(root / "docs/layers.txt")
    problems = [p for tree in TREES for p in problems_of_tree(root, tree, may_see)]
    problems += [f"these {len(circle)} include each other in a circle: " + " ".join(sorted(circle))
                 for circle in circles(included_rooms(root)) if len(circle) > 1]
    if problems:
        print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
