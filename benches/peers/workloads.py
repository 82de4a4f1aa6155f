#!/usr/bin/env python3
"""Writes the workloads that all simulators run: files of `kernbench probe --traffic` that are JSON as well."""

import json
import pathlib
import random

HERE = pathlib.Path(__file__).parent / "workloads"


def transfer(issuer: str, target: str, op: str = "read") -> dict:
    return {"from": issuer, "to": target, "bytes": 4096, "start_ns": 0, "op": op}


def random_cube(count: int) -> list[dict]:
    """Any PE of a cube reads any slice of the cube."""
    pick = random.Random(count)
    return [
        transfer(f"sip0.cube0.pe{pick.randrange(8)}", f"sip0.cube0.pe{pick.randrange(8)}")
        for _ in range(count)
    ]


def hot_spot() -> list[dict]:
    """All PEs of a SIP read one slice."""
    return [
        transfer(f"sip0.cube{cube}.pe{pe}", "sip0.cube0.pe0")
        for cube in range(16)
        for pe in range(8)
    ]


def everywhere(count: int) -> list[dict]:
    """What else there is: other SIPs, the host, writes, short flits, late starts. It checks that the
    simulators agree, and is not timed."""
    pick = random.Random(count)

    def pe():
        return f"sip{pick.randrange(2)}.cube{pick.randrange(16)}.pe{pick.randrange(8)}"

    transfers = []
    for i in range(count):
        one = transfer("host" if i % 8 == 0 else pe(), pe(), pick.choice(["read", "write"]))
        one["bytes"] = pick.choice([4096, 16384, 1 + pick.randrange(9000)])
        one["start_ns"] = pick.choice([0, 0, pick.randrange(500)])
        transfers.append(one)
    return transfers


def published() -> list[dict]:
    """Rows with a known result, one after another, 10 us apart."""
    pes = range(8)
    rows = [
        [("sip0.cube0.pe0", "sip0.cube0.pe0", 16)],
        [("sip0.cube0.pe0", "sip0.cube0.pe0", 32)],
        [("sip0.cube0.pe1", "sip0.cube0.pe0", 16)],
        [(f"sip0.cube0.pe{pe}", "sip0.cube0.pe0", 16) for pe in pes],
        [(f"sip0.cube0.pe{pe}", f"sip0.cube1.pe{pe}", 16) for pe in pes],
        [("sip0.cube0.pe0", "sip0.cube15.pe7", 16)],
        [("sip0.cube0.pe0", "sip1.cube0.pe0", 16)],
        [("host", "sip0.cube0.pe0", 64)],
    ]
    transfers = []
    for i, row in enumerate(rows):
        for issuer, target, kib in row:
            op = "write" if issuer == "host" else "read"
            one = transfer(issuer, target, op)
            transfers.append(one | {"bytes": kib * 1024, "start_ns": 10_000 * i})
    return transfers


def write(name: str, transfers: list[dict]) -> None:
    lines = ",\n".join("  " + json.dumps(t) for t in transfers)
    (HERE / f"{name}.yaml").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    write("random-64", random_cube(64))
    write("random-1024", random_cube(1024))
    write("hot-spot-128", hot_spot())
    write("everywhere-200", everywhere(200))
    write("published", published())
