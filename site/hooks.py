"""Makes a site of the guide: docs/README.md gives the navigation, and links out of docs lead to the repository."""

import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "target/reports/apidocs"
LINK = re.compile(r"\[([^\]]*)]\(([^)\s]+)\)")


def on_config(config):
    """The headings of docs/README.md are sections, and each link of a list is a page."""
    nav = [{"Guide": "README.md"}]
    for line in (ROOT / "docs/README.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            pages = []
            nav.append({line[3:]: pages})
        elif line.startswith(("- ", "  ")):
            pages += [{capital(title.strip("`")): page} for title, page in LINK.findall(line)]
    if API.exists():
        nav.append({"API": "api/index.html"})
    config["nav"] = nav
    return config


def capital(title):
    return title if re.match("[a-z]+-", title) else title[:1].upper() + title[1:]


def on_files(files, config):
    """The navigation leads to the first page of the Javadoc, if it was built before."""
    if API.exists():
        files.append(File.generated(config, "api/index.html", abs_src_path=str(API / "index.html")))
    return files


def on_post_build(config):
    if API.exists():
        shutil.copytree(API, Path(config["site_dir"]) / "api", dirs_exist_ok=True)


def on_page_markdown(markdown, page, config, files):
    return lists(LINK.sub(lambda link: to_repository(link, page, config), markdown))


def to_repository(link, page, config):
    title, target = link.groups()
    if ":" in target or target.startswith("#"):
        return link.group()
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
    if path.startswith("docs/"):
        return link.group()
    kind = "tree" if (ROOT / path.split("#")[0]).is_dir() else "blob"
    return f"[{title}]({config['repo_url']}/{kind}/main/{path})"


def lists(markdown):
    """Python-Markdown wants four spaces before what continues an item, CommonMark as many as the mark has."""
    lines, mark, code = [], 0, False
    for line in markdown.split("\n"):
        code ^= line.startswith("```")
        item = not code and re.match(r"(?:-|\d\.|\d\d\.) ", line)
        if item:
            mark = len(item.group())
        elif line and not line.startswith(" "):
            mark = 0
        continues = not item and mark and line.startswith(" " * mark)
        lines.append(" " * (4 - mark) + line if continues else line)
    return "\n".join(lines)
