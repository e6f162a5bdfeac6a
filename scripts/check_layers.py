#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail when a file includes a module that its module may not include, or a library that its folder
may not use, or when files include each other in a cycle.

docs/layers.txt lists which modules a module may include. VENDORS lists which source folder or file
may include a library's headers. Those headers never appear in a public header, so that no other
module is compiled against them. The module `kernels` is the folder of that name. A header and its
source are one component. A cycle is a set of components that all include each other, directly or not.
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
    r"png\.h": ["data"],
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
    allowed_modules = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        module, names = line.split(":")
        lower = set(names.split())
        unknown = lower - allowed_modules.keys()
        if unknown:
            sys.exit(f"{path}: {module} names modules that are not listed above it: {unknown}")
        allowed_modules[module.strip()] = lower | {module.strip()}
    return allowed_modules


def is_inside(file, folder):
    """Whether `file` is in `folder`, or is the file of that name."""
    return file == folder or file.startswith(folder + "/")


def problem_of(header, file, is_public, allowed_modules):
    """The error of including `header` from a `file` of a tree, or None."""
    module = file.split("/")[0]
    own = re.match(r"(?:hpcai/(\w+)|(kernels))/", header)
    if own:
        included = own[1] or own[2]
        allowed = included in allowed_modules.get(module, set())
        return None if allowed else f"{module} may not include {included}"
    if header.startswith("../"):
        return f"{header}: include across folders by hpcai/<module>/..."
    for pattern, folders in VENDORS.items():
        if not re.fullmatch(pattern, header):
            continue
        if not any(is_inside(file, folder) for folder in folders):
            return f"{header} belongs in {' and '.join(folders)}"
        if is_public and pattern not in PUBLIC_VENDORS:
            return f"{header} in a public header"
    return None


def problems_of_tree(root, tree, allowed_modules):
    base = root / tree
    for path in sorted(base.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        file = TREES[tree] + path.relative_to(base).as_posix()
        place = os.path.relpath(path)
        if file.split("/")[0] not in allowed_modules:
            yield f"{place}: its folder is not a module of docs/layers.txt"
            continue
        for number, text in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', text)
            problem = found and problem_of(found[1], file, tree.startswith("include"), allowed_modules)
            if problem:
                yield f"{place}:{number}: {problem}"


def is_module_path(root, name):
    """Whether an included `name` begins with a module; else it is relative to the including file."""
    return name.startswith("kernels/") or (root / "include/hpcai" / name).exists()


def included_components(root):
    """component -> components that its files include. A component is a path below a tree, without suffix."""
    found = {}
    for tree, prefix in TREES.items():
        base = root / tree
        for path in sorted(base.rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            folder = pathlib.PurePath(prefix) / path.relative_to(base).parent
            headers = re.findall(r'^\s*#\s*include\s*[<"](?:hpcai/)?([^">]+)', path.read_text(), re.M)
            paths = {name if is_module_path(root, name) else os.path.normpath(folder / name) for name in headers}
            component = (folder / path.stem).as_posix()
            found.setdefault(component, set()).update(name.rsplit(".", 1)[0] for name in paths)
    return {component: included & found.keys() for component, included in found.items()}


def reachable_from(component, included):
    reachable, pending = set(), [component]
    while pending:
        for other in included[pending.pop()] - reachable:
            reachable.add(other)
            pending.append(other)
    return reachable


def cycles(included):
    reachable = {component: reachable_from(component, included) for component in included}
    return {frozenset(other for other in reachable[component] if component in reachable[other])
            for component in reachable}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    allowed_modules = read_layers(root / "docs/layers.txt")
    problems = [p for tree in TREES for p in problems_of_tree(root, tree, allowed_modules)]
    problems += [f"these {len(cycle)} include each other in a cycle: " + " ".join(sorted(cycle))
                 for cycle in cycles(included_components(root)) if len(cycle) > 1]
    if problems:
        print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
