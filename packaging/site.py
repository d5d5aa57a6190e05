"""Gathers the pages for mdBook: site.py DIRECTORY VERSION

DIRECTORY gets book.toml and src/, where the pages lie as in the repository, but for README.md, which is index.md. The
table of contents comes from docs/README.md and docs/decisions/README.md, so a page that neither names is not on the
site. Links to other files lead to the repository, as it is in VERSION.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

REPOSITORY = "https://github.com/kubectl-applyset/kubectl-applyset"
ROOT = Path(__file__).parent.parent
START, CONTENTS, DECISIONS = "README.md", "docs/README.md", "docs/decisions/README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED_LINK = re.compile(r"\[([^]]+)\]\(([^)#\s]+\.md)\)")


def target(page, link):
    """The path of what a link of a page leads to, from the root of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def place(page):
    """The path of a page on the site. mdBook renames README.md itself, but not in links."""
    return page.removesuffix("README.md") + "index.md" if page.endswith("README.md") else page


def links(page):
    """The heading above each link to a page, the text of the link, and the page."""
    heading = ""
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        for text, link in NAMED_LINK.findall(line):
            if "://" not in link:
                yield heading, text, target(page, link)


def contents():
    """The lines of the table of contents, and the pages in it."""
    lines, pages, part = [f"[Start]({place(START)})", f"[All pages]({place(CONTENTS)})"], [START, CONTENTS], ""
    for heading, text, page in links(CONTENTS):
        if page in pages or not heading:
            continue
        if heading != part:
            part = heading
            lines += ["", f"# {part}", ""]
        lines.append(f"- [{text}]({place(page)})")
        pages.append(page)
        if page == DECISIONS:
            for _, text, decision in links(DECISIONS):
                if decision not in pages:
                    lines.append(f"  - [{text}]({decision})")
                    pages.append(decision)
    return "\n".join(lines) + "\n", pages


def linked(page, pages, version):
    """The text of a page, whose links to what is not on the site lead to the repository."""

    def replace(found):
        link, _, anchor = found[1].partition("#")
        path = target(page, link)
        if not link or "://" in link or path.startswith("docs/pictures/"):
            return found[0]
        if path in pages:
            link = place(link)
        else:
            link = f"{REPOSITORY}/{'tree' if (ROOT / path).is_dir() else 'blob'}/{version}/{path}"
        return f"]({link}{'#' + anchor if anchor else ''})"

    return LINK.sub(replace, (ROOT / page).read_text())


def main():
    directory, version = Path(sys.argv[1]), sys.argv[2]
    source = directory / "src"
    table, pages = contents()
    shutil.copytree(ROOT / "docs/pictures", source / "docs/pictures")
    shutil.copy(ROOT / "packaging/book.toml", directory)
    (source / "SUMMARY.md").write_text("# Contents\n\n" + table)
    for page in pages:
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / place(page)).write_text(linked(page, pages, version))


main()
