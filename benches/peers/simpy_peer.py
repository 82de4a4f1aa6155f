#!/usr/bin/env python3
"""The rules of transport as an ordinary SimPy model: a process for each node, edge and HBM channel.

Reads what `peer_traffic export` wrote, simulates it flit by flit and prints the answer as JSON. Time is
in integer picoseconds.
"""

import json
import sys
import time
from heapq import heappushpop

import simpy


class Move:
    """A transfer under way."""

    def __init__(self, number, spec, system):
        flit = system["flit_bytes"]
        self.number = number
        self.start = spec["start_ps"]
        self.response = spec["response_ps"]
        self.route = spec["route"]
        self.sizes = [min(flit, spec["bytes"] - at) for at in range(0, spec["bytes"], flit)]
        self.channels = [(spec["channel"] + i) % system["channels"] for i in range(len(self.sizes))]
        self.left = len(self.sizes)
        self.end = self.start


class Network:
    """Nodes, edges and channels, each with its process and the store that feeds it.

    A flit is a tuple (arrival, number of the transfer, index, hop, transfer), so that a priority store
    gives them out in the order in which a node serves; `hop` edges of its route are behind it.
    """

    def __init__(self, env, system):
        self.env = env
        self.moves = [Move(i, spec, system) for i, spec in enumerate(system["moves"])]
        self.flit_bytes = system["flit_bytes"]
        self.burst = system["burst_ps"]
        self.edges = [simpy.Store(env) for _ in system["edges"]]
        self.inboxes, self.exits, self.channels = {}, {}, {}
        sinks = {system["edges"][move.route[-1]]["to"] for move in self.moves}
        for i, node in enumerate(system["nodes"]):
            if i in sinks:
                self.channels[i] = [simpy.Store(env) for _ in range(system["channels"])]
                for queue in self.channels[i]:
                    env.process(self.channel(queue))
            elif node["service"] == "worker":
                self.inboxes[i] = simpy.PriorityStore(env)
                env.process(self.worker(self.inboxes[i], node["overhead_ps"]))
            elif node["service"] == "gather":
                self.inboxes[i], self.exits[i] = simpy.Store(env), simpy.PriorityStore(env)
                env.process(self.gatherer(self.inboxes[i], self.exits[i], node["overhead_ps"]))
                env.process(self.worker(self.exits[i], 0))
        for i, edge in enumerate(system["edges"]):
            env.process(self.edge(self.edges[i], edge))
        env.process(self.source([edge["from"] for edge in system["edges"]]))

    def source(self, origins):
        """Hands out the flits of every transfer when it starts."""
        env = self.env
        for move in sorted(self.moves, key=lambda move: (move.start, move.number)):
            if move.start > env.now:
                yield env.timeout(move.start - env.now)
            first = move.route[0]
            store = self.exits.get(origins[first], self.edges[first])
            for index in range(len(move.sizes)):
                store.put((env.now, move.number, index, 0, move))

    def edge(self, queue, edge):
        """Moves flit after flit to the far node."""
        env, rate, delay = self.env, edge["bytes_per_us"], edge["propagation_ps"]
        flit_bytes = self.flit_bytes
        flit_time = -(-flit_bytes * 1_000_000 // rate)
        inbox, channels = self.inboxes.get(edge["to"]), self.channels.get(edge["to"])

        def arrive(number, index, hop, move):
            store = channels[move.channels[index]] if channels else inbox
            store.put((env.now, number, index, hop + 1, move))

        while True:
            _, *flit = yield queue.get()
            size = flit[3].sizes[flit[1]]
            yield env.timeout(flit_time if size == flit_bytes else -(-size * 1_000_000 // rate))
            if delay:
                env.timeout(delay, flit).callbacks.append(lambda event: arrive(*event.value))
            else:
                arrive(*flit)

    def worker(self, inbox, overhead):
        """One serial worker: the earliest flit first, then by transfer, then by index."""
        env, edges, settled = self.env, self.edges, None
        while True:
            flit = yield inbox.get()
            if flit[0] == env.now != settled:
                # All that arrives now must have arrived before one of it is served.
                yield env.timeout(0)
                flit = heappushpop(inbox.items, flit)
                settled = env.now
            _, _, index, hop, move = flit
            if index == 0 and overhead:
                yield env.timeout(overhead)
            edges[move.route[hop]].put(flit)

    def gatherer(self, inbox, exit, overhead):
        """Releases the flits of a transfer when all have come."""
        env, gathered = self.env, {}

        def release(flits):
            yield env.timeout(overhead)
            for _, *flit in flits:
                exit.put((env.now, *flit))

        while True:
            flit = yield inbox.get()
            move = flit[4]
            flits = gathered.setdefault(move, [])
            flits.append(flit)
            if len(flits) == len(move.sizes):
                env.process(release(gathered.pop(move)))

    def channel(self, queue):
        """Commits one burst after another."""
        env, burst = self.env, self.burst
        while True:
            *_, move = yield queue.get()
            yield env.timeout(burst)
            move.left -= 1
            move.end = env.now


def main(path):
    with open(path) as file:
        system = json.load(file)
    env = simpy.Environment()
    network = Network(env, system)
    # Processor time: a run takes seconds, in which a shared machine does other things as well.
    begin = time.process_time()
    env.run()
    seconds = time.process_time() - begin
    assert all(move.left == 0 for move in network.moves)
    print(json.dumps({
        "end_ps": [move.end + move.response for move in network.moves],
        "best_s": seconds,
        "flit_hops": sum(len(move.sizes) * len(move.route) for move in network.moves),
    }))


if __name__ == "__main__":
    main(sys.argv[1])
