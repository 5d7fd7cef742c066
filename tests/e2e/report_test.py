"""capgate report: the page in a real browser, the picture, the data, and where they are written."""

import json
import os
import re
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
        path = self.tree.file("loud.html", """<!DOCTYPE html><title>x</title><h1>x</h1>
            <img src="http://origin.invalid/x.png" width="3000" height="1"><svg class="picture">
            <rect class="g-card" width="20" height="20" fill="#fff"/>
            <text y="15" fill="#eee">too long</text></svg>""")
        page = self.browser.open(path)
        self.assertIn("http://origin.invalid/x.png", page.requests)
        self.assertNotEqual(page.messages, [])
        self.assertGreater(page.evaluate("document.documentElement.scrollWidth"), 1280)
        self.assertEqual(page.evaluate(OVERFLOW), ["too long"])
        self.assertEqual(len(page.evaluate(CONTRAST)), 1)
        self.assertNotEqual(page_checks.axe_violations(page), [])
        self.assertNotEqual(page_checks.html_mistakes(path), [])

    def test_a_checker_of_accessibility_finds_nothing(self):
        for name in ("github", "docker", "wider", "hostile"):
            for look in ({}, {"dark": True}, {"width": 320}):
                with self.subTest(page=name, **look):
                    page = self.browser.open(self.pages[name], **look)
                    self.assertEqual(page_checks.axe_violations(page), [])

    def test_a_checker_of_html_finds_nothing(self):
        for name, path in self.pages.items():
            with self.subTest(page=name):
                self.assertEqual(page_checks.html_mistakes(path), [])

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


class Files(ReportCase):
    def test_the_page_loads_nothing(self):
        for text in (self.report(GITHUB), self.report(self.manifest("h.json", HOSTILE))):
            self.assertIn("default-src 'none'; style-src 'sha256-", text)
            self.assertEqual(re.findall(r"<(?:script|link|img|iframe|object|base)\b", text), [])
            self.assertEqual(re.findall(r"""(?:src|href)="(?!#)""", text), [])
            self.assertEqual(re.findall(r"url\(|@import", text), [])

    def test_the_picture_is_svg(self):
        for words in ([GITHUB], [self.manifest("h.json", HOSTILE)],
                      [EVERY, "--target", "podman"], [self.manifest("b.json", BIG)]):
            root = xml.etree.ElementTree.fromstring(self.report(*words, "--svg"))
            self.assertEqual(root.tag, SVG + "svg")
            self.assertTrue(root.find(SVG + "title").text.endswith("in its box"))
            self.assertIn("At worst", root.find(SVG + "desc").text)

    def test_data(self):
        data = json.loads(self.report(GITHUB, "--json"))
        self.assertEqual(data["schemaVersion"], 1)
        self.assertEqual([line["capability"] for line in data["lines"]],
                         ["fs:write:/workspace/**", "net:connect:api.github.com:443",
                          "env:inject:GITHUB_PERSONAL_ACCESS_TOKEN"])
        self.assertEqual(data["lines"][1]["origins"][0],
                         {"tool": "create_issue", "place": "github.json:9:10",
                          "capability": "net:connect:api.github.com:443"})
        self.assertEqual(data["counts"], {"lines": 3, "widened": 0, "notEnforced": 0})

    def test_every_target_answers(self):
        targets = json.loads(launch.capgate("targets", "--json").stdout)
        names = [one["name"] for one in targets]
        self.assertIn("docker", names)
        for name in names:
            with self.subTest(target=name):
                data = json.loads(self.report(EVERY, "--target", name, "--json"))
                self.assertEqual(data["problems"], [])
                self.assertGreater(data["counts"]["notEnforced"], 0)

    def test_one_tool_and_variables_and_sealing(self):
        path = self.manifest("v.json", manifest(
            "v", tool("a", "fs:read:${REPO}/**"),
            tool("b", "env:inject:KEY", "net:connect:a.example:443")))
        data = json.loads(self.report(path, "--set", "REPO=/srv/x", "--tool", "a", "--json"))
        self.assertEqual([line["capability"] for line in data["lines"]], ["fs:read:/srv/x/**"])
        self.assertEqual([one["name"] for one in data["tools"]], ["a"])
        data = json.loads(self.report(path, "--set", "REPO=/srv/x", "--seal", "--json"))
        self.assertIn("env:inject:KEY?to=a.example:443",
                      [line["capability"] for line in data["lines"]])
        # OLD need not use every variable of NEW, nor have its tool.
        old = self.manifest("o.json", manifest("v", tool("b", "env:inject:KEY")))
        self.report(path, "--set", "REPO=/srv/x", "--tool", "a", "--against", old)

    def test_against_what_cannot_be_read(self):
        done = launch.capgate("report", GITHUB, "--against", self.tree.path("none.json"))
        self.assertEqual(done.returncode, 3)
        bad = self.manifest("bad.json", manifest("b", tool("t", "fs:read:relative")))
        done = launch.capgate("report", GITHUB, "--against", bad)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("CAP_FS_RELATIVE", done.stderr)

    def test_against_itself_nothing_is_wider(self):
        self.assertIn("= nothing wider than github.json", self.report(GITHUB, "--against", GITHUB))

    def test_where_it_is_written(self):
        place = self.tree.path("report.html")
        self.assertEqual(self.report(GITHUB, "-o", place), "")
        with open(place, encoding="utf-8") as file:
            written = file.read()
        self.assertEqual(written, self.report(GITHUB))
        self.assertEqual(written, self.report(GITHUB, "-o", "-"))
        done = launch.capgate("report", EVERY, "-o", place)
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists", done.stderr)
        self.report(GITHUB, "--svg", "-o", place, "--force")
        with open(place, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<svg"))
        self.assertEqual([name for name in os.listdir(self.tree.root) if ".new-" in name], [])

    def test_it_takes_nothing_away(self):
        link = self.tree.path("link.html")
        os.symlink(self.tree.file("kept.txt", "kept"), link)
        pipe = self.tree.path("pipe")
        os.mkfifo(pipe)
        for place in (link, pipe, self.tree.root, "/dev/null"):
            with self.subTest(place=place):
                done = launch.capgate("report", GITHUB, "-o", place, "--force")
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, "is no regular file|is a directory")
        with open(link, encoding="utf-8") as file:
            self.assertEqual(file.read(), "kept")

    def test_words(self):
        for words in (["--svg", "--json"], ["--target", "dokcer"], ["-o", ""]):
            with self.subTest(words=words):
                done = launch.capgate("report", GITHUB, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_the_same_bytes_in_any_place(self):
        with open(GITHUB, encoding="utf-8") as file:
            copy = self.tree.file("deep/er/github.json", file.read())
        self.assertEqual(self.report(GITHUB), self.report(copy))


if __name__ == "__main__":
    unittest.main()
