"""The statistics of crate `statistics`, written a second time, without packages.

`mean_interval` is Student's; `shift_of` is the stratified rank sum of `statistics/src/shift.rs`
with its random exchanges (ChaCha8), so that its intervals equal those of the program.
"""

import math
import struct

STUDENT = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281]
Z = 1.959964
SAMPLED_FLIPS = 999


def student_quantile(freedom):
    """The two-sided quantile of Student's t at 95 %."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)
    third = (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / (384 * freedom**3)
    return Z + (Z**3 + Z) / (4 * freedom) + second + third


def mean_interval(values):
    """Mean of independent values with its 95 % interval."""
    count, middle = len(values), sum(values) / len(values)
    variance = sum((value - middle) ** 2 for value in values) / (count - 1) / count
    reach = student_quantile(count - 1) * math.sqrt(variance)
    return [middle, middle - reach, middle + reach]


def mean_ratio(ratios):
    """Geometric mean of ratios with its interval."""
    return [math.exp(end) for end in mean_interval([math.log(ratio) for ratio in ratios])]


def pooled_ratio(groups):
    """Geometric mean over groups of equal size and weight, each with a variance of its own."""
    logs = [mean_interval([math.log(ratio) for ratio in group]) for group in groups]
    middle = sum(log[0] for log in logs) / len(logs)
    reach = math.sqrt(sum((log[2] - log[0]) ** 2 for log in logs)) / len(logs)
    return [math.exp(end) for end in (middle, middle - reach, middle + reach)]


def chacha8_words(key):
    """The 64-bit words of ChaCha8 with this key, from block 0 on."""
    rotated = lambda word, bits: (word << bits | word >> (32 - bits)) & 0xFFFFFFFF
    lanes = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    lanes += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    block = 0
    while True:
        start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
        start += [block & 0xFFFFFFFF, block >> 32, 0, 0]
        state = list(start)
        for _ in range(4):
            for a, b, c, d in lanes:
                for first, second, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    state[first] = (state[first] + state[second]) & 0xFFFFFFFF
                    state[mixed] = rotated(state[mixed] ^ state[first], bits)
        words = [(mine + its) & 0xFFFFFFFF for mine, its in zip(state, start)]
        yield from (low | high << 32 for low, high in zip(words[::2], words[1::2]))
        block += 1


def random_signs(pairs):
    """Rows of signs: all exchanges of few pairs, else a sample with the observed one."""
    if 2 ** (pairs - 1) <= SAMPLED_FLIPS:
        return [[1 if row >> bit & 1 == 0 else -1 for bit in range(pairs)] for row in range(2 ** (pairs - 1))]
    draws = chacha8_words(struct.pack("<Q", 3) + b"bulkhead statistics, v1.")
    sample = [next(draws) for _ in range(SAMPLED_FLIPS)]
    signs = [[-1 if word >> bit & 1 else 1 for bit in range(pairs)] for word in sample]
    return [[1] * pairs, *signs]


def pair_differences(a, b):
    """Every difference within a placement, ascending, with its weight. Runs are (value, placement)."""
    found = []
    for value, place in a:
        weight = 1 / (sum(other == place for _, other in a + b) + 1)
        found += [(other - value, weight) for other, there in b if there == place]
    return sorted(found)


def weighted_quantile(differences, rank):
    total = 0.0
    for index, (value, weight) in enumerate(differences):
        total += weight
        if abs(total - rank) < 1e-9:
            return (value + differences[min(index + 1, len(differences) - 1)][0]) / 2
        if total > rank:
            return value
    return differences[-1][0]


def pair_scores(a, b, shift):
    """Each pair's difference of ranks within its placement, as a share, with B shifted back."""
    values = [*a, *((value - shift, place) for value, place in b)]
    ranks = []
    for value, place in values:
        there = [other for other, at in values if at == place]
        below, equal = sum(other < value for other in there), sum(other == value for other in there)
        ranks.append((below + (equal - 1) / 2 - (len(there) - 1) / 2) / (len(there) + 1))
    return [ranks[len(a) + pair] - ranks[pair] for pair in range(len(a))]


def shift_by_ranks(differences):
    total, variance = sum(weight for _, weight in differences), sum(weight for _, weight in differences) / 12
    limit = total / 2 - Z * math.sqrt(variance) - min(weight for _, weight in differences) / 2
    middle = weighted_quantile(differences, total / 2)
    return [middle, weighted_quantile(differences, limit), weighted_quantile(differences, total - limit)]


def shift_by_flips(a, b):
    """Hodges and Lehmann's estimate, and every shift that a permutation test does not reject."""
    differences = pair_differences(a, b)
    value = shift_by_ranks(differences)[0]
    steps = sorted({difference for difference, _ in differences})
    signs = random_signs(len(a))

    def is_refused(shift):
        scores = pair_scores(a, b, shift)
        found = abs(sum(scores)) - 1e-9
        extreme = sum(abs(sum(s * score for s, score in zip(row, scores))) >= found for row in signs)
        return extreme <= int(0.05 * len(signs))

    gaps = [steps[0] - 1, *((low + high) / 2 for low, high in zip(steps, steps[1:])), steps[-1] + 1]
    centre = sum(step < value - 1e-12 for step in steps)
    below, inside = 0, centre
    while below + 1 < inside:
        middle = (below + inside) // 2
        below, inside = (middle, inside) if is_refused(gaps[middle]) else (below, middle)
    inside, above = min(centre + 1, len(steps)), len(steps)
    above = inside if is_refused(gaps[inside]) else above
    while inside + 1 < above:
        middle = (inside + above) // 2
        inside, above = (inside, middle) if is_refused(gaps[middle]) else (middle, above)
    return [value, min(steps[below], value), max(steps[above - 1], value)]


def shift_of(a, b):
    """Difference of B and A, entries with equal indices are pairs: estimate and 95 % interval."""
    return shift_by_flips(a, b) if len(a) >= 8 else shift_by_ranks(pair_differences(a, b))


def ratio_of(a, b):
    """Ratio of B to A in the same way."""
    logs = ([(math.log(value), place) for value, place in side] for side in (a, b))
    return [math.exp(end) for end in shift_of(*logs)]


def placements(floors):
    """Numbers of groups of core-to-core times, from the closest on: neighbors differ by 25 % at most."""
    ordered = sorted(floors)
    edges = [high for low, high in zip(ordered, ordered[1:]) if high > low * 1.25]
    return [sum(floor >= edge for edge in edges) for floor in floors]

