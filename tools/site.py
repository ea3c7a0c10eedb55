"""What `mkdocs.yml` needs beyond pages: references that come from the programs themselves.

The page of the command line is what `--help` prints, that of Python comes from docstrings, and
that of Rust leads to what `cargo doc` has made, which is copied into the site. Links to files
of the repository that are no pages lead nowhere on a site, and become their text.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "release" / "tidegate"
RUSTDOC = TARGET / "doc"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")

PYTHON = """# Python

All that `import tidegate` has, from its docstrings. [The guide](python.md) says how it is used.

"""
MODULES = ["tidegate", "tidegate.figures", "tidegate.ways", "tidegate.tables", "tidegate.gateway_tables"]
RUST = """# Rust

Each crate has its documentation, with examples that run in CI. [The architecture](architecture.md) says what they have to do with each other.

"""


def on_config(config):
    """Names the pages that a pattern of the navigation stands for."""
    config.nav = [expanded(entry) for entry in config.nav]
    return config


def expanded(entry):
    """An entry of the navigation without patterns."""
    if isinstance(entry, str):
        return entry
    [(title, pages)] = entry.items()
    if isinstance(pages, str):
        return entry
    named = {it for it in pages if isinstance(it, str) and "*" not in it}
    all_pages = []
    for page in pages:
        if isinstance(page, str) and "*" in page:
            found = (it.relative_to(ROOT / "docs").as_posix() for it in ROOT.glob(f"docs/{page}.md"))
            all_pages += sorted(set(found) - named)
        else:
            all_pages.append(page)
    return {title: all_pages}


def on_files(files, config):
    """Adds the pages that come from programs."""
    pages = {"command-line.md": command_line(), "python-reference.md": python(), "rust.md": rust()}
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns links that leave the pages into their text."""
    folder = pathlib.Path(page.file.src_uri).parent

    def linked(match):
        text, target = match.groups()
        path = target.split("#")[0]
        if "://" in target or not path or files.get_file_from_path(os.path.normpath(folder / path)):
            return match.group()
        # A folder of pages is its first page.
        inside = os.path.normpath(folder / path / "README.md")
        if files.get_file_from_path(inside):
            return f"[{text}]({path.rstrip('/')}/README.md)"
        return text

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(it if it.startswith("```") else LINK.sub(linked, it) for it in parts)


def on_post_build(config):
    """Puts the documentation of the crates beside the pages."""
    shutil.copytree(RUSTDOC, pathlib.Path(config.site_dir) / "rust-doc", dirs_exist_ok=True)


def command_line() -> str:
    """What each command says of itself."""
    text = "# Command line\n\nWhat each command prints with `--help`.\n"
    commands = [[]]
    while commands:
        command = commands.pop(0)
        said = subprocess.run(
            [PROGRAM, *command, "--help"], check=True, capture_output=True, text=True
        ).stdout
        name = " ".join(["tidegate", *command])
        text += f"\n## {name}\n\n```text\n{said.rstrip()}\n```\n"
        below = re.search(r"^Commands:\n((?:  .*\n)+)", said, re.M)
        names = re.findall(r"^  (\S+)", below.group(1), re.M) if below else []
        commands[:0] = [[*command, it] for it in names if it != "help"]
    return text


def python() -> str:
    """The modules of the package."""
    return PYTHON + "".join(f"::: {module}\n\n" for module in MODULES)


def rust() -> str:
    """A line for each crate, with what it says of itself."""
    lines = []
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        text = manifest.read_text()
        name = re.search(r'^name = "(.*)"', text, re.M).group(1)
        summary = re.search(r'^description = "(.*)"', text, re.M).group(1)
        crate = name.replace("-", "_")
        if (RUSTDOC / crate / "index.html").is_file():
            lines.append(f'- <a href="../rust-doc/{crate}/index.html">`{name}`</a>: {summary}')
    return RUST + "\n".join(lines) + "\n"
