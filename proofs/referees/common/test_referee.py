"""Tests of what the referees share: `python3 -m unittest discover proofs/referees/common`."""

import unittest

import referee


class Summary(unittest.TestCase):
    RUNS = [(1, "row", "bulkhead-8", 20.0), (1, "row", "other", 40.0), (2, "row", "bulkhead-8", 20.0)]

    def test_ratio_of_times_is_others_to_ours(self):
        row = referee.summarize(self.RUNS)["row"]
        self.assertEqual((row["ratio"], row["best_of_ours"]), (2.0, "bulkhead-8"))
        self.assertEqual(list(row["contenders"]), ["bulkhead-8", "other"])

    def test_ratio_of_rates_is_ours_to_others(self):
        row = referee.summarize(self.RUNS, higher_is_better={"row"})["row"]
        self.assertEqual((row["ratio"], list(row["contenders"])), (0.5, ["other", "bulkhead-8"]))

    def test_row_without_ours_has_no_ratio(self):
        self.assertIsNone(referee.summarize([(1, "row", "other", 1.0)])["row"]["ratio"])


class Rounds(unittest.TestCase):
    def test_another_contender_begins_each_round(self):
        order = []
        runs = referee.measure_in_turn({"row": ["a", "b"]}, lambda _, name: order.append(name), 2, 60)
        self.assertEqual((order, runs), (["a", "b", "b", "a"], []), "no figure is no run")

    def test_budget_ends_the_rounds(self):
        runs = referee.measure_in_turn({"row": ["a"]}, lambda *_: 1.0, 2, -1)
        self.assertEqual(runs, [])


if __name__ == "__main__":
    unittest.main()
