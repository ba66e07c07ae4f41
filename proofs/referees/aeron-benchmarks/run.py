#!/usr/bin/env python3
"""Runs the load test rig of aeron-io/benchmarks over our queue and over Aeron IPC, in turn.

    aeron-benchmarks/run.py --classpath CLASSES --java JAVA --library LIBRARY [--cores 0 1] [--rates 100k 500k 1M]

CLASSES: their classes and jars, and ours (README.md). The rig sends messages at a fixed rate on the
first core, another process echoes them on the second, and the rig measures from when a message was
due until it came back. A media driver of Aeron may use both cores; its thread sleeps when idle.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import referee  # noqa: E402

RIG = "io.aeron.benchmarks.LoadTestRig"
OURS, AERON = "bulkhead", "Aeron IPC"
QUANTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9}


def read_rate(text):
    """Returns messages a second: 100k, 1M or a number."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(float(text.rstrip("kM")) * factor)


def settings(rate, options, folder, transceiver):
    """Returns the rig's properties for a run."""
    prefix = "io.aeron.benchmarks."
    return {
        prefix + "warmup.iterations": options.warm_up,
        prefix + "warmup.message.rate": rate,
        prefix + "iterations": options.seconds,
        prefix + "message.rate": rate,
        prefix + "message.length": options.bytes,
        prefix + "batch.size": 1,
        prefix + "idle.strategy": "org.agrona.concurrent.BusySpinIdleStrategy",
        prefix + "message.transceiver": transceiver,
        prefix + "output.directory": folder,
        prefix + "output.file": "rig",
        prefix + "output.time.unit": "NANOSECONDS",
        prefix + "report.progress": "false",
    }


def read_quantiles(text):
    """Returns `{quantile: nanoseconds}` of the rig's table: value and percentile a line."""
    if "WARNING" in text:
        return None
    rows = re.findall(r"^ *([0-9.]+) +([01]\.[0-9]+) +[0-9]+ ", text, re.MULTILINE)
    figures = {}
    for name, percent in QUANTILES.items():
        # The first line at or beyond a percentile, as the table's own reading.
        value = next((float(value) for value, share in rows if float(share) * 100 >= percent - 1e-9), None)
        if value is None:
            return None
        figures[name] = value
    return figures


def end(process):
    """Ends a process: our echo removes its queues when its input is closed, the others need a signal."""
    process.stdin.close()
    for stop in (lambda: None, process.terminate, process.kill):
        stop()
        try:
            process.wait(timeout=2)
            break
        except subprocess.TimeoutExpired:
            continue
    process.stdout.close()


class Runner:
    """Starts the processes of a run, and ends them."""

    def __init__(self, options):
        self.options = options

    def java(self, core, main, properties):
        command = ["taskset", "-c", core, self.options.java, "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch"]
        command += ["-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED"]
        command += ["--add-opens=java.base/java.util.zip=ALL-UNNAMED", "-cp", self.options.classpath]
        command += [f"-D{name}={value}" for name, value in properties.items()]
        return [*command, main]

    def run(self, rate, contender):
        rig_core, echo_core = map(str, self.options.cores)
        folder = tempfile.mkdtemp(prefix="rig-")
        processes = []

        def start(core, main, properties):
            process = subprocess.Popen(
                self.java(core, main, properties), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            processes.append(process)
            return process

        try:
            if contender == OURS:
                transceiver = "bulkhead.benchmark.QueueTransceiver"
                extra = {"bulkhead.queue.library": self.options.library, "bulkhead.benchmark.name": f"rig-{os.getpid()}"}
                properties = settings(rate, self.options, folder, transceiver) | extra
                echo = start(echo_core, "bulkhead.benchmark.EchoNode", properties)
                if echo.stdout.readline().strip() != "ready":
                    print(f"{contender}: the echo did not start: {echo.stdout.read()}", file=sys.stderr)
                    return None
            else:
                transceiver = "io.aeron.benchmarks.aeron.EchoMessageTransceiver"
                name = "io.aeron.benchmarks.aeron."
                extra = {
                    "aeron.dir": "/dev/shm/aeron-" + Path(folder).name,
                    name + "embedded.media.driver": "false",
                    name + "source.channel": "aeron:ipc",
                    name + "destination.channel": "aeron:ipc",
                    name + "source.stream": 13333,
                    name + "destination.stream": 13334,
                    name + "idle.strategy": "org.agrona.concurrent.BusySpinIdleStrategy",
                }
                properties = settings(rate, self.options, folder, transceiver) | extra
                driver = {
                    "aeron.dir": extra["aeron.dir"],
                    "aeron.threading.mode": "SHARED",
                    "aeron.sharedIdleStrategy": "org.agrona.concurrent.SleepingMillisIdleStrategy",
                    "aeron.term.buffer.sparse.file": "false",
                    "aeron.pre.touch.mapped.memory": "true",
                }
                start(f"{rig_core},{echo_core}", "io.aeron.driver.MediaDriver", driver)
                time.sleep(2)
                start(echo_core, "io.aeron.benchmarks.aeron.EchoNode", properties)
                time.sleep(1)
            rig = subprocess.run(
                self.java(rig_core, RIG, properties), capture_output=True, text=True, check=False, timeout=600
            )
            figures = read_quantiles(rig.stdout)
            if figures is None:
                print(f"{contender} at {rate}/s: {(rig.stdout + rig.stderr)[-600:]}", file=sys.stderr)
            return figures
        finally:
            for process in reversed(processes):
                end(process)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree("/dev/shm/aeron-" + Path(folder).name, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classpath", required=True, help="their classes and jars, and ours")
    parser.add_argument("--java", default="java", help="a Java of 22 or newer")
    parser.add_argument("--library", required=True, type=Path, help="libbulkhead_queue.so")
    parser.add_argument("--cores", type=int, nargs=2, default=[0, 1])
    parser.add_argument("--rates", nargs="+", default=["100k", "500k", "1M"])
    parser.add_argument("--bytes", type=int, default=32, help="of a message")
    parser.add_argument("--seconds", type=int, default=20, help="of a run")
    parser.add_argument("--warm-up", type=int, default=5, help="seconds before a run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=1800.0, help="seconds in all")
    parser.add_argument("--commit", default="6afb215a", help="the commit of their classes")
    parser.add_argument("--out", type=Path, default=referee.ROOT / "target/referees/aeron-benchmarks")
    options = parser.parse_args()
    options.library = options.library.resolve()
    machine = referee.describe_machine(options.cores)
    runner = Runner(options)
    cells = {rate: [OURS, AERON] for rate in options.rates}
    runs = referee.measure_in_turn(cells, lambda rate, name: runner.run(read_rate(rate), name), options.rounds, options.budget)
    rows = [
        (number, f"{rate}/s, {quantile}", contender, value)
        for number, rate, contender, figures in runs
        for quantile, value in figures.items()
    ]
    program = {"name": f"aeron-io/benchmarks, load test rig, {options.bytes} bytes", "commit": options.commit}
    referee.report(options.out, program, machine, rows, lambda row: "ns")


if __name__ == "__main__":
    main()
