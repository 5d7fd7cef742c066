"""capgate report: the page in a real browser, and the picture in an XML reader."""

import json
import os
import unittest
import xml.etree.ElementTree

import launch
import page_checks
from browser import Browser
from cases import Case

GITHUB = os.path.join(launch.ROOT, "examples/github.json")
EVERY = os.path.join(launch.ROOT, "tests/golden/every-kind/manifest.yaml")
SVG = "{http://www.w3.org/2000/svg}"


def tool(name, *capabilities):
    return {"name": name, "capabilities": list(capabilities)}


def manifest(name, *tools):
    return {"name": name, "version": "1.0.0", "tools": list(tools)}


LONG = "very-long-directory-name/" * 8
BIG = manifest("big", *[tool(f"tool_{i:03}_{'x' * 40}", f"fs:read:/srv/{LONG}{i}/**",
                             f"net:connect:host{i:03}.a-long-company-name.example.com:443",
                             "fs:write:/srv/shared/**") for i in range(100)])
HOSTILE = manifest(
    "</title><script>alert(0)</script>" + "W" * 10000,
    tool("<script>alert(1)</script>", 'fs:read:"/srv/<img src=x onerror=alert(1)>&amp;"'),
    tool("\u202egnp.exe \u05e9\u05dc\u05d5\u05dd \u4f60\u597d", 'fs:read:"/srv/\u05d0/\u05d1"'),
    tool("x" * 10000, "net:connect:api.example.com:443"),
    tool('"><svg onload=alert(1)>', 'assert:a.b:"</style><script>alert(2)</script>"'))

# The control of every check: a page that asks for something, overflows and has mistakes.
LOUD = """<!DOCTYPE html><title>x</title><h1>x</h1>
<img src="http://origin.invalid/x.png" width="3000" height="1"><svg class="picture">
<rect class="g-card" width="20" height="20" fill="#fff"/>
<text y="15" fill="#eee">too long</text></svg>"""

# Texts that stand out of the card or the box in which they start, in pixels of the drawing.
OVERFLOW = """[...document.querySelectorAll('.picture')].flatMap(svg => {
  if (!svg.checkVisibility()) return [];
  const boxes = [...svg.querySelectorAll('.g-card, .g-box')].map(box => box.getBBox());
  return [...svg.querySelectorAll('text')].flatMap(text => {
    const own = text.getBBox();
    const around = boxes.filter(box => own.y >= box.y && own.y + own.height <= box.y + box.height
                                && own.x >= box.x && own.x + own.width <= box.x + box.width);
    return around.length ? [] : [text.textContent];
  });
})"""

# The contrast of each text of the picture with what is drawn below it, where it is less than 4.5.
CONTRAST = """(() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => { const [r, g, b] = numbers(colour).map(
      c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const bad = [];
  for (const svg of document.querySelectorAll('.picture')) {
    if (!svg.checkVisibility()) continue;
    const areas = [];
    for (const item of svg.querySelectorAll('rect, text')) {
      const style = getComputedStyle(item), box = item.getBBox();
      if (item.tagName === 'rect') { if (style.fill !== 'none') areas.push([box, style.fill]);
        continue; }
      let below = getComputedStyle(document.body).backgroundColor;
      for (const [area, fill] of areas) {
        if (box.x >= area.x && box.x < area.x + area.width && box.y + 8 >= area.y &&
            box.y + 8 < area.y + area.height) below = fill;
      }
      const [a, b] = [light(style.fill), light(below)].sort((x, y) => y - x);
      if ((a + .05) / (b + .05) < 4.5) bad.push([item.textContent, style.fill, below]);
    }
  }
  return bad;
})()"""


class ReportCase(Case):
    def manifest(self, name, value):
        return self.tree.file(name, json.dumps(value))

    def report(self, *words):
        done = launch.capgate("report", *words)
        self.assertEqual(done.returncode, 0, done.stderr[:1000])
        self.assertEqual(done.stderr, "")
        return done.stdout

    def page(self, name, *words):
        """A report in a file that the browser's user may read."""
        return self.tree.file(name, self.report(*words))


class Pages(ReportCase):
    """Every check of the browser on pages that differ as much as manifests do."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        page_checks.install()
        cls._browser = Browser()
        cls.browser = cls._browser.__enter__()
        cls.addClassCleanup(cls._browser.__exit__, None, None, None)

    def setUp(self):
        super().setUp()
        empty = self.manifest("empty.json", manifest("empty"))
        big = self.manifest("big.json", BIG)
        hostile = self.manifest("hostile.json", HOSTILE)
        self.pages = {
            "empty": self.page("empty.html", empty),
            "github": self.page("github.html", GITHUB),
            "docker": self.page("docker.html", EVERY, "--target", "docker"),
            "landlock": self.page("landlock.html", GITHUB, "--target", "landlock"),
            "wider": os.path.join(launch.ROOT, "tests/report/wider.html"),
            "big": self.page("big.html", big),
            "hostile": self.page("hostile.html", hostile)}

    def assert_quiet_and_fitting(self, page):
        self.assertEqual(len(page.requests), 1, page.requests)
        self.assertEqual(page.messages, [])
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                             page.evaluate("innerWidth"))
        self.assertEqual(page.evaluate(OVERFLOW), [])
        self.assertEqual(page.evaluate(CONTRAST), [])
        self.assertEqual(page.evaluate("document.scripts.length"), 0)
        self.assertEqual(page.evaluate("document.querySelectorAll('h1').length"), 1)
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('.picture')].filter(p => p.checkVisibility()).length"),
            1)

    def test_it_asks_for_nothing_says_nothing_and_fits(self):
        for name, path in self.pages.items():
            for look in ({}, {"dark": True}, {"width": 320}, {"width": 1280, "zoom": 2}):
                with self.subTest(page=name, **look):
                    self.assert_quiet_and_fitting(self.browser.open(path, **look))

    def test_a_request_and_an_overflow_would_be_seen(self):
        page = self.browser.open(self.tree.file("loud.html", LOUD))
        self.assertIn("http://origin.invalid/x.png", page.requests)
        self.assertNotEqual(page.messages, [])
        self.assertGreater(page.evaluate("document.documentElement.scrollWidth"), 1280)
        self.assertEqual(page.evaluate(OVERFLOW), ["too long"])
        self.assertEqual(len(page.evaluate(CONTRAST)), 1)
        self.assertNotEqual(page_checks.axe_violations(page), [])

    def test_a_checker_of_accessibility_finds_nothing(self):
        for name in ("github", "docker", "wider", "hostile"):
            for look in ({}, {"dark": True}, {"width": 320}):
                with self.subTest(page=name, **look):
                    page = self.browser.open(self.pages[name], **look)
                    self.assertEqual(page_checks.axe_violations(page), [])

    def test_a_checker_of_html_finds_nothing(self):
        loud = self.tree.file("loud.html", LOUD)
        mistakes = page_checks.html_mistakes(*self.pages.values(), loud)
        self.assertEqual({path for path, _, _ in mistakes}, {loud}, mistakes)

    def test_what_a_screen_reader_is_told(self):
        page = self.browser.open(self.pages["github"])
        (name, description), = page.accessible("image")
        self.assertEqual(name, "@modelcontextprotocol/server-github 0.6.2 in its box")
        self.assertIn("At worst it can send what it reads in /workspace/**", description)
        self.assertIn(("Every line of the policy", ""), page.accessible("table"))
        # The table is one in the narrow layout, too, and still has its headers.
        page.look(width=320)
        page.settle()
        self.assertIn(("Every line of the policy", ""), page.accessible("table"))
        self.assertIn("Enforced by", [name for name, _ in page.accessible("columnheader")])
        self.assertEqual(len(page.accessible("main")), 1)
        self.assertEqual(len(page.accessible("navigation")), 1)

    def test_it_is_read_without_a_mouse(self):
        page = self.browser.open(self.pages["big"])
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Skip to the report")
        self.assertGreaterEqual(
            page.evaluate("document.activeElement.getBoundingClientRect().left"), 0)
        self.assertNotEqual(
            page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none")
        page.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.id"), "main")
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.tagName"), "SUMMARY")
        page.press("Enter")
        self.assertTrue(page.evaluate("document.querySelector('details').open"))

    def test_it_is_printed_whole_and_light(self):
        page = self.browser.open(self.pages["big"], dark=True, media="print")
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.assertFalse(page.evaluate("document.querySelector('details').open"))
        self.assertTrue(page.evaluate("document.querySelector('details li').checkVisibility()"))
        page.look()
        self.assertFalse(page.evaluate("document.querySelector('details li').checkVisibility()"))
        self.assertTrue(page.print_pdf().startswith(b"%PDF"))

    def test_marks_have_words_beside_their_colours(self):
        page = self.browser.open(self.pages["docker"])
        self.assertIn("! not enforced", page.evaluate("document.querySelector('#lines').innerText"))
        page = self.browser.open(self.pages["wider"])
        for words in ("+ wider", "+ bound is gone", "− narrower", "→ moved"):
            self.assertIn(words, page.evaluate("document.querySelector('#changes').innerText"))


class Picture(ReportCase):
    """The rest of the command: src/cli/report_test.cc."""

    def test_the_picture_is_svg(self):
        for words in ([GITHUB], [self.manifest("h.json", HOSTILE)],
                      [EVERY, "--target", "podman"], [self.manifest("b.json", BIG)]):
            root = xml.etree.ElementTree.fromstring(self.report(*words, "--svg"))
            self.assertEqual(root.tag, SVG + "svg")
            self.assertTrue(root.find(SVG + "title").text.endswith("in its box"))
            self.assertIn("At worst", root.find(SVG + "desc").text)


if __name__ == "__main__":
    unittest.main()
