#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/fixtures: small JPEG and PNG files with the pixels Pillow decodes from them, and
pictures resized by Pillow. The tests read them without Python. Needs Pillow and NumPy.

usage: make_image_cases.py [DIRECTORY]     (default: tests/data/fixtures of this repository)
"""
import io
import json
import pathlib
import sys

import numpy
from PIL import Image


def picture(width, height, seed):
    """Smooth waves, an edge and some noise: all frequencies, for the codec and the filter."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    waves = [127 + 100 * numpy.sin(x * random.uniform(0.05, 0.6) + y * random.uniform(0.05, 0.6))
             for _ in range(3)]
    pixels = numpy.stack(waves, axis=-1)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = random.uniform(0, 255, 3)
    pixels += random.normal(0, 12, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def jpeg(image, **options):
    stream = io.BytesIO()
    image.save(stream, format="JPEG", **options)
    return stream.getvalue()


def odd_jpegs(plain, inks):
    """Files that Pillow reads, as data sets have them; libjpeg warns of those named warning_*."""
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: rotated
    file, cmyk = jpeg(plain, quality=90, subsampling="4:2:0"), jpeg(inks, quality=90)
    adobe = cmyk.index(b"\xff\xee\x00\x0eAdobe")
    jfif, scan = file.index(b"JFIF\0") + 5, file.index(b"\xff\xda") + 14
    return {
        "oriented": jpeg(plain, quality=90, subsampling="4:2:0", exif=exif),
        "ycck": cmyk[: adobe + 15] + b"\x02" + cmyk[adobe + 16 :],
        "cmyk_without_adobe": cmyk[:adobe] + cmyk[adobe + 16 :],
        "warning_version": file[:jfif] + b"\x02\x09" + file[jfif + 2 :],
        "warning_scan_parameters": file[: scan - 3] + b"\0\0\0" + file[scan:],
        "warning_extraneous_bytes": file[: jfif + 9] + b"\0\0\0" + file[jfif + 9 :],
        "warning_corrupt_data": file[: scan + 300] + b"\xff\0\x5a" * 20 + file[scan + 360 :],
        "warning_early_end": file[: scan + 600] + b"\xff\xd9",
    }


def write_decode_cases(folder):
    plain = picture(45, 35, 1)
    inks = Image.merge("CMYK", [*picture(45, 35, 2).split(), picture(45, 35, 3).split()[0]])
    cases = {
        "yuv420": (plain, dict(quality=90, subsampling="4:2:0")),
        "yuv422": (plain, dict(quality=75, subsampling="4:2:2")),
        "yuv444": (plain, dict(quality=95, subsampling="4:4:4")),
        "progressive": (plain, dict(quality=85, progressive=True)),
        "grey": (plain.convert("L"), dict(quality=90)),
        "cmyk": (inks, dict(quality=90)),
    }
    files = {name: jpeg(image, **options) for name, (image, options) in cases.items()}
    for name, file in (files | odd_jpegs(plain, inks)).items():
        path = folder / f"{name}.jpg"
        path.write_bytes(file)
        with Image.open(path) as stored:
            stored.convert("RGB").save(folder / f"{name}.ppm")
    plain.save(folder / "png_inside.jpg", format="PNG")
    plain.save(folder / "png_inside.ppm")


def resize(folder, source_name, source, requests, first):
    """Writes each resized picture; returns the requests."""
    cases = []
    for index, (width, height, box) in enumerate(requests, first):
        name = f"resize_{index}.ppm"
        source.resize((width, height), Image.Resampling.BILINEAR, box=box).save(folder / name)
        cases.append({"source": source_name, "file": name, "width": width, "height": height,
                      "box": box})
    return cases


def resize_horizontal_first(source, case):
    left, top, right, bottom = case["box"]
    width, height = case["width"], case["height"]
    narrow = source.resize((width, source.height), Image.Resampling.BILINEAR,
                           box=(left, 0, right, source.height))
    return narrow.resize((width, height), Image.Resampling.BILINEAR, box=(0, top, width, bottom))


def write_resize_cases(folder):
    source = picture(61, 47, 4)
    source.save(folder / "resize_source.ppm")
    whole = (0, 0, 61, 47)
    requests = [
        (32, 32, whole), (61, 47, whole), (61, 20, whole), (20, 47, whole), (97, 80, whole),
        (7, 5, whole), (1, 1, whole), (24, 24, (3.25, 4.5, 50.75, 40.125)),
        (40, 40, (10, 10, 31, 29)), (16, 24, (0.5, 0, 60.5, 47)), (40, 33, (3.1, 20.2, 53.3, 46.9)),
    ]
    cases = resize(folder, "resize_source.ppm", source, requests, 0)
    # Pillow 13 runs the vertical pass first if that is cheaper. This project follows older versions,
    # which never do. Two requests of one pass each give their result with any version.
    tall = picture(40, 130, 5)
    tall.save(folder / "resize_tall.ppm")
    whole = (0, 0, 40, 130)
    requests = [(32, 32, whole), (64, 24, whole), (50, 90, whole), (20, 33, (2.5, 1.25, 38, 129.5))]
    for case in resize(folder, "resize_tall.ppm", tall, requests, len(cases)):
        case["horizontal_first"] = case["file"].replace("resize", "resize_horizontal_first")
        resize_horizontal_first(tall, case).save(folder / case["horizontal_first"])
        cases.append(case)
    (folder / "resize.json").write_text(json.dumps(cases, indent=1) + "\n")


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "fixtures"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    write_decode_cases(folder)
    write_resize_cases(folder)


if __name__ == "__main__":
    main()
