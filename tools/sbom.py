#!/usr/bin/env python3
"""What a built program is made of, as SPDX 2.3: the libraries that it is linked with, the modules in web/vendor, Seedling.

    tools/sbom.py build/parley > parley.spdx.json

Libraries are named as the Debian packages that they come from, with their versions, where dpkg knows them. The same tree,
libraries and $SOURCE_DATE_EPOCH give the same bytes.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Licences by what each says in its own words.
LICENCES = {"Permission is hereby granted, free of charge,": "MIT", "Apache License Version 2.0": "Apache-2.0",
            "Permission to use, copy, modify, and/or distribute this software": "ISC",
            "Redistribution and use in source and binary forms": "BSD-3-Clause",
            "This is free and unencumbered software": "Unlicense"}


def run(*command):
    """What a command prints, also if it fails: dpkg-query does for one name of many that it does not know. "" without it."""
    try:
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def package(name, version, licence, **more):
    ident = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.lstrip("@"))
    return {"SPDXID": ident, "name": name, **({"versionInfo": version} if version else {}), "downloadLocation": "NOASSERTION",
            "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", "filesAnalyzed": False, **more}


def purl(text):
    return {"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": text}]}


def licence_of(name):
    """By the text that scripts/vendor has put beside the module."""
    file = ROOT / f"web/vendor/licenses/{name.lstrip('@').replace('/', '-')}.txt"
    text = " ".join(file.read_text().split())
    found = [licence for words, licence in LICENCES.items() if words in text]
    if not found:
        sys.exit(f"sbom: {file.relative_to(ROOT)} is a licence that tools/sbom.py does not know")
    return " AND ".join(found)


def vendored():
    """What scripts/vendor pins; the bundler itself is not in the page."""
    pinned = re.findall(r"^(\S+)@(\S+) +([0-9a-f]{64})$", (ROOT / "scripts/vendor").read_text(), re.M)
    for name, version, digest in sorted(pinned):
        if not name.startswith("@esbuild/"):
            yield package(name, version, licence_of(name), checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
                          **purl(f"pkg:npm/{name.replace('@', '%40')}@{version}"))


def linked(program):
    """The libraries that the program itself asks for, not those that these bring."""
    names = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(program)))
    if not names:
        sys.exit(f"sbom: {program} is not a program that readelf can read")
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", str(program)), re.M))
    # dpkg knows a library by the path it has in its package: as the loader finds it, with or without the /usr that is merged.
    candidates = {name: [p for path in (paths.get(name, ""), os.path.realpath(paths.get(name, "/"))) for p in (path, path.removeprefix("/usr"), "/usr" + path)]
                  for name in names}
    listed = run("dpkg-query", "-S", *sorted({p for ps in candidates.values() for p in ps if p.endswith(".so") or ".so." in p}))
    owners = {path: owner for owner, path in re.findall(r"^([^:, ]+)[^ ]*: (/\S+)$", listed, re.M)}
    found = {name: next((owners[p] for p in ps if p in owners), None) for name, ps in candidates.items()}
    versions = dict(re.findall(r"^(\S+)\t(\S+)$", run("dpkg-query", "-W", "-f", "${Package}\t${Version}\n", *sorted(set(filter(None, found.values())))), re.M))
    packages = {}
    for name, owner in found.items():
        version = versions.get(owner, "")
        packages[owner or name] = package(owner or name, version, "NOASSERTION", **(purl(f"pkg:deb/debian/{owner}@{version}") if owner else {}))
    return [packages[name] for name in sorted(packages)]


def main():
    program = pathlib.Path(sys.argv[1])
    version = re.search(r"^project\(parley VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    parts = [(p, "CONTAINS") for p in vendored()]
    seedling = ROOT / "assets/seedling/model.safetensors"
    parts.append((package("seedling", version, "MIT", checksums=[{"algorithm": "SHA256", "checksumValue": sha256(seedling)}]), "CONTAINS"))
    parts += [(p, "DYNAMIC_LINK") for p in linked(program)]
    digest = sha256(program)
    top = package("parley", version, "MIT", checksums=[{"algorithm": "SHA256", "checksumValue": digest}], primaryPackagePurpose="APPLICATION")
    created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"parley-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/parley-{version}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: tools/sbom.py"]},
        "packages": [top] + [p for p, _ in parts],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": top["SPDXID"]}] +
                         [{"spdxElementId": top["SPDXID"], "relationshipType": kind, "relatedSpdxElement": p["SPDXID"]} for p, kind in parts],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
