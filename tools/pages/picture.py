#!/usr/bin/env python3
"""Takes a picture of the head of a page, once on light ground and once on dark.

    python3 tools/pages/picture.py PAGE WIDTH HEIGHT STEM

Writes STEM-light.webp and STEM-dark.webp, of more pixels for sharp screens.
"""

import base64
import sys
from pathlib import Path

from check import browser


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    page, width, height, stem = sys.argv[1:]
    size = {"width": int(width), "height": int(height)}
    with browser() as open_browser:
        protocol = open_browser.execute_cdp_cmd
        metrics = {**size, "deviceScaleFactor": 1.5, "mobile": False}
        protocol("Emulation.setDeviceMetricsOverride", metrics)
        open_browser.get(Path(page).resolve().as_uri())
        for theme in ("light", "dark"):
            scheme = {"name": "prefers-color-scheme", "value": theme}
            protocol("Emulation.setEmulatedMedia", {"features": [scheme]})
            clip = {**size, "x": 0, "y": 0, "scale": 1}
            picture = {"format": "webp", "quality": 60, "clip": clip}
            data = protocol("Page.captureScreenshot", picture)["data"]
            Path(f"{stem}-{theme}.webp").write_bytes(base64.b64decode(data))


if __name__ == "__main__":
    main()
