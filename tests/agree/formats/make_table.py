# SPDX-License-Identifier: Apache-2.0
"""Writes table.txt beside this script: what ml_dtypes and torch, which must agree, make of each 16- and 8-bit format.

A line is `KIND FORMAT BLOCK CRC`: the CRC-32 of 256 consecutive codes' results, NaNs made one.
decode: the f32 of each code.
round:  the codes of seven f32 numbers for each code c whose successor has the same sign, where a and b are their values (b infinite or NaN
        beyond the largest: as if the format went on): a, b, their middle, and the f32 neighbours of the middle, of a above, of b below.
Lines `special FORMAT BITS CODE` hold single f32 numbers (subnormal, huge, infinite, NaN)."""
import pathlib
import struct
import zlib

import ml_dtypes
import numpy as np
import torch

FORMATS = {"f16": (np.float16, torch.float16, 16, 10, 15), "bf16": (ml_dtypes.bfloat16, torch.bfloat16, 16, 7, 127),
           "f8e4m3": (ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, 8, 3, 7), "f8e5m2": (ml_dtypes.float8_e5m2, torch.float8_e5m2, 8, 2, 15)}
SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00400000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
           0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0x477FEFFF, 0x477FF000, 0x43E7FFFF, 0x43E80000, 0x43E80001, 0x43F00000, 0x476FFFFF, 0x47700000]


def unsigned(bits):
    return np.uint16 if bits == 16 else np.uint8


def decode(codes, name):
    numpy_type, torch_type, bits, _, _ = FORMATS[name]
    raw = codes.astype(unsigned(bits))
    ours = raw.view(numpy_type).astype(np.float32)
    theirs = torch.from_numpy(raw.view(np.int16 if bits == 16 else np.uint8).copy()).view(torch_type).to(torch.float32).numpy()
    number = ~np.isnan(ours)
    assert np.array_equal(ours, theirs, equal_nan=True) and np.array_equal(np.signbit(ours[number]), np.signbit(theirs[number]))
    return ours


def encode(x, name):
    numpy_type, torch_type, bits, _, _ = FORMATS[name]
    with np.errstate(over="ignore", invalid="ignore"):
        ours = x.astype(numpy_type).view(unsigned(bits)).astype(np.uint16)
    theirs = torch.from_numpy(x.copy()).to(torch_type).view(torch.int16 if bits == 16 else torch.uint8).numpy().view(unsigned(bits)).astype(np.uint16)
    value = decode(ours, name)
    ours[np.isnan(value)] = theirs[np.isnan(decode(theirs, name))] = 0xFFFF
    if name == "f8e4m3":  # has no infinity: beyond 464 ml_dtypes (and OCP's default mode) gives NaN, torch its largest number
        theirs[np.abs(x) > 464] = 0xFFFF
    assert np.array_equal(ours, theirs), (name, [(float(a), hex(b), hex(c)) for a, b, c in zip(x, ours, theirs) if b != c][:8])
    return ours


def magnitude(code, name):
    """The value of a code without its sign, as if exponents went on beyond the largest finite one."""
    _, _, _, mantissa, bias = FORMATS[name]
    exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - mantissa)
    return (fraction + (1 << mantissa)) * 2.0 ** (exponent - bias - mantissa)


def rounded(code, name):
    bits = FORMATS[name][2]
    sign = -1.0 if code >> (bits - 1) else 1.0
    low = code & ((1 << (bits - 1)) - 1)
    a, b = np.float64(magnitude(low, name)), np.float64(magnitude(low + 1, name))
    with np.errstate(over="ignore"):
        middle, low32, high32 = np.float32((a + b) / 2), np.float32(a), np.float32(b)
    up, down = np.float32(np.inf), np.float32(0)
    return sign * np.array([low32, high32, middle, np.nextafter(middle, up), np.nextafter(middle, down), np.nextafter(low32, up),
                            np.nextafter(high32, down)], np.float32)


def main():
    lines = []
    for name, (_, _, bits, _, _) in FORMATS.items():
        for block in range(0, 1 << bits, 256):
            codes = np.arange(block, block + 256)
            values = decode(codes, name)
            values[np.isnan(values)] = np.float32(np.nan)
            words = values.view(np.uint32).copy()
            words[np.isnan(values)] = 0x7FC00000
            lines.append(f"decode {name} {block // 256} {zlib.crc32(words.astype('<u4').tobytes()):08x}")
            finite = [c for c in codes if (c & ((1 << (bits - 1)) - 1)) != (1 << (bits - 1)) - 1]
            inputs = np.concatenate([rounded(int(c), name) for c in finite])
            lines.append(f"round {name} {block // 256} {zlib.crc32(encode(inputs, name).astype('<u2').tobytes()):08x}")
        for word in SPECIAL:
            x = np.array(struct.unpack("<f", struct.pack("<I", word)), np.float32)
            lines.append(f"special {name} {word:08x} {encode(np.array([word], np.uint32).view(np.float32), name)[0]:04x}")
    (pathlib.Path(__file__).parent / "table.txt").write_text("\n".join(lines) + "\n")


main()
