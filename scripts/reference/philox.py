# SPDX-License-Identifier: Apache-2.0
"""The counter-based random numbers of include/hpcai/base/philox.hpp, written again from the paper
(Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) and from that
header's contract, for the scripts of this folder. Needs only Python.

usage: philox.py        (checks the generator against the known answers of Random123)
"""

MASK = 0xFFFFFFFF
PURPOSES = {"bootstrap": 1, "shuffle": 2, "augmentation": 3, "initialization": 4,
            "synthetic_data": 5, "photographs": 6, "confidence": 7, "test": 8}

# kat_vectors of Random123, philox4x32 with 10 rounds: counter, key, result.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([MASK] * 4, [MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


def philox4x32(counter, key):
    """Ten rounds: four 32-bit words from a counter of four and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        product_0, product_1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (product_1 >> 32 ^ c1 ^ k0, product_1 & MASK,
                          product_0 >> 32 ^ c3 ^ k1, product_0 & MASK)
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return [c0, c1, c2, c3]


class CounterStream:
    """The stream (seed, purpose, a, b, c): the counter's first word has the purpose in its upper
    8 bits and the number of the block in its lower 24, the other three are a, b, c."""

    def __init__(self, seed, purpose, a=0, b=0, c=0):
        self.key = [seed & MASK, seed >> 32]
        self.start = PURPOSES[purpose] << 24
        self.name = [a, b, c]
        self.blocks = 0
        self.words = []

    def next_u32(self):
        if not self.words:
            self.words = philox4x32([self.start | self.blocks, *self.name], self.key)
            self.blocks += 1
        return self.words.pop(0)

    def next_u64(self):
        low = self.next_u32()
        return low | self.next_u32() << 32

    def uniform(self):
        """A multiple of 2^-53 in [0, 1)."""
        return (self.next_u64() >> 11) * 2.0**-53

    def below(self, n):
        """Uniform in [0, n): Lemire's product with rejection of values that would cause a bias."""
        if n <= 1:
            return 0
        while True:
            product = self.next_u32() * n
            if product & MASK >= 2**32 % n:
                return product >> 32


def check_known_answers():
    for counter, key, expected in KNOWN_ANSWERS:
        assert philox4x32(counter, key) == expected, "philox4x32 is wrong"


if __name__ == "__main__":
    check_known_answers()
    print("agrees with the known answers of Random123")
