# SPDX-License-Identifier: Apache-2.0
"""npy arrays of predictions and labels."""
import array
import math
import re
import struct
import sys

from findings import MalformedFile
from result_files import sha256

MAX_HEADER_BYTES = 1 << 16


def read_npy(files, name, code, shape):
    """(elements, SHA-256 of the file); `code` is "f" for f32 or "i" for i32."""
    data = files.read(name, 4 * math.prod(shape) + MAX_HEADER_BYTES)
    if data[:8] != b"\x93NUMPY\x01\x00" or len(data) < 10:
        raise MalformedFile(f"{name}: is not an npy file of version 1.0")
    size = struct.unpack("<H", data[8:10])[0]
    extents = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    kind = "<f4" if code == "f" else "<i4"
    wanted = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}"
    if not re.fullmatch(re.escape(wanted) + " *\n", data[10:10 + size].decode("latin-1")):
        raise MalformedFile(f"{name}: has a wrong npy header; must have {wanted}")
    stored_bytes = len(data) - 10 - size
    if stored_bytes != 4 * math.prod(shape):
        raise MalformedFile(f"{name}: has {stored_bytes} bytes of elements; must have {4 * math.prod(shape)}")
    values = array.array(code)
    values.frombytes(data[10 + size:])
    if sys.byteorder == "big":
        values.byteswap()
    return values, sha256(data)
