"""plot.py draws a picture that readers of SVG accept, with every point inside it and in its place."""
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import plot  # noqa: E402

PART = "{http://www.w3.org/2000/svg}"


class Plot(unittest.TestCase):
    def drawn(self, series, logarithmic):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "picture.svg"
            plot.lines(file, "more & less", "x", "y", series, logarithmic)
            return tree.parse(file).getroot()

    def test_points_are_where_they_belong(self):
        for logarithmic in ((True, False), (True, True), (False, False)):
            picture = self.drawn({"one <&>": [(1, 2), (8, 4.5), (64, 900)], "two": [(1, (1, 5, 7)), (64, (30, 30, 30))]},
                                 logarithmic)
            places = [(float(c.get("cx")), float(c.get("cy"))) for c in picture.iter(f"{PART}circle")]
            self.assertEqual(len(places), 5)
            for x, y in places:
                self.assertTrue(plot.LEFT <= x <= plot.LEFT + plot.WIDTH and plot.TOP <= y <= plot.TOP + plot.HEIGHT)
            one = places[:3]
            self.assertEqual(one, sorted(one))  # to the right
            self.assertEqual([y for _, y in one], sorted((y for _, y in one), reverse=True))  # and up
            self.assertEqual(places[0][0], places[3][0])

    def test_marks_are_round_or_the_values(self):
        words = [t.text for t in self.drawn({"one": [(1, 2.37), (64, 948)]}, (True, False)).iter(f"{PART}text")]
        for mark in ("1", "64", "0", "200", "1000", "more & less", "one"):
            self.assertIn(mark, words)
        words = [t.text for t in self.drawn({"one": [(1, 2.37), (64, 948)]}, (True, True)).iter(f"{PART}text")]
        for mark in ("1", "10", "100", "1000"):
            self.assertIn(mark, words)


if __name__ == "__main__":
    unittest.main()
