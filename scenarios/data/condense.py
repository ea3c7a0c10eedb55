"""Condenses HTTP Archives into one, with what a simulator needs of each request.

What is kept is the page, the time, the address, the sizes, the version of HTTP, the
connection, what discovered it, its priority, and how long it took. Addresses become
`https://HOST/NUMBER`, with the number of the address in the archive; the names of pages
get the number of their archive. What is unknown (-1, or nothing) is left out.

    python3 condense.py ARCHIVE ... > pages.har
"""

import json
import sys
from urllib.parse import urlsplit


def known(number):
    """A number to a tenth of a millisecond, if there is one."""
    return round(number, 1) if isinstance(number, (int, float)) and number >= 0 else None


def without_nothing(table):
    return {key: value for key, value in table.items() if value not in (None, "", {})}


def condensed(entries, archive):
    urls = dict.fromkeys(entry["request"]["url"] for entry in entries)
    numbers = {url: number for number, url in enumerate(urls)}

    def address(url):
        host = urlsplit(url).netloc.rsplit("@", 1)[-1]
        return f"https://{host}/{numbers[url]}"

    for entry in entries:
        request, response = entry["request"], entry.get("response") or {}
        timings = entry.get("timings") or {}
        initiator = entry.get("_initiator")
        connection = entry.get("connection") or entry.get("_socket")
        yield without_nothing({
            "pageref": f"{archive}/{entry.get('pageref', '')}",
            "startedDateTime": entry["startedDateTime"],
            "time": known(entry.get("time")),
            "request": without_nothing({
                "url": address(request["url"]),
                "headersSize": known(request.get("headersSize")),
                "bodySize": known(request.get("bodySize")) or None,
            }),
            "response": without_nothing({
                "bodySize": known(response.get("bodySize")),
                "httpVersion": response.get("httpVersion"),
            }),
            "timings": without_nothing({
                part: known(timings.get(part)) for part in ("connect", "ssl", "wait", "receive")
            }),
            "connection": f"{archive}/{connection}" if connection else None,
            "_initiator": address(initiator) if initiator in numbers else None,
            "_priority": entry.get("_priority"),
        })


if __name__ == "__main__":
    print('{"log": {"version": "1.2", "entries": [')
    lines = []
    for archive, name in enumerate(sys.argv[1:], 1):
        with open(name, encoding="utf-8-sig") as file:
            entries = json.load(file)["log"]["entries"]
        lines += (json.dumps(it, separators=(",", ":")) for it in condensed(entries, archive))
    print(",\n".join(lines))
    print("]}}")
