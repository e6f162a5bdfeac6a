# SPDX-License-Identifier: Apache-2.0
"""Counter-based random numbers and the bootstrap draws made of them."""
import math

REPLICATES = 1000
CONFIDENCE = 7  # RandomPurpose::confidence of the program: the draws of intervals


class Stream:
    """The numbers of (seed, purpose, a, b, c): Philox4x32-10 (Salmon et al., SC 2011), block by block."""

    def __init__(self, seed, purpose, a, b, c=0):
        self.key = seed & 0xFFFFFFFF, seed >> 32
        self.name = purpose << 24, a, b, c
        self.block, self.words, self.spare = 0, [], None

    def next(self):
        if not self.words:
            counter, key = (self.name[0] | self.block, *self.name[1:]), self.key
            for _ in range(10):
                product_0, product_1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
                counter = ((product_1 >> 32) ^ counter[1] ^ key[0], product_1 & 0xFFFFFFFF,
                           (product_0 >> 32) ^ counter[3] ^ key[1], product_0 & 0xFFFFFFFF)
                key = (key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF
            self.words = list(reversed(counter))
            self.block += 1
        return self.words.pop()

    def below(self, n):
        """Lemire's method with rejection."""
        if n < 2:
            return 0
        product = self.next() * n
        if product & 0xFFFFFFFF < n:
            while product & 0xFFFFFFFF < 2 ** 32 % n:
                product = self.next() * n
        return product >> 32

    def uniform(self):
        """A multiple of 2^-53 in [0, 1)."""
        low = self.next()
        return ((low | self.next() << 32) >> 11) * 2.0**-53

    def normal(self):
        """Box-Muller."""
        if self.spare is not None:
            value, self.spare = self.spare, None
            return value
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        angle = 2.0 * math.pi * self.uniform()
        self.spare = radius * math.sin(angle)
        return radius * math.cos(angle)


def draws_of_members(seed, members):
    """How often each member occurs in each of 1000 draws, with replacement, of all members."""
    draws = []
    for replicate in range(REPLICATES):
        stream, weights = Stream(seed, CONFIDENCE, replicate, 1), [0] * members
        for _ in range(members):
            weights[stream.below(members)] += 1
        draws.append(tuple(weights))
    return draws
