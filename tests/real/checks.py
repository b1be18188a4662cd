"""What must hold of a real server, seen through the built binary.

Usage: checks.py llamacpp|vllm TTFT URL
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path


def wait_for(url: str, seconds: int) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"no server at {url} within {seconds} s")
            time.sleep(0.2)


def ttft(binary: str, *args: str, code: int = 0) -> dict:
    """Runs the binary with --json; its exit code must be `code`."""
    done = subprocess.run([binary, *args, "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{args}: exit {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


class Checks:
    """Each method whose name begins with `check_` is one check."""

    def __init__(self, kind: str, binary: str, url: str) -> None:
        self.kind, self.binary, self.url = kind, binary, url

    def run(self, *args: str, warmup: int = 2, code: int = 0) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", str(Path(folder) / "run"), "--warmup", str(warmup)]
            return ttft(self.binary, "run", self.url, *out, *args, code=code)

    def check_one_request(self) -> None:
        seen = ttft(self.binary, "check", self.url, "--max-tokens", "16")
        assert seen["outcome"] == "ok" and seen["http_status"] == 200, seen
        assert 0 < seen["ttft_ms"] <= seen["e2e_ms"], seen
        assert seen["output_tokens"] and seen["input_tokens"] > 100, seen
        assert seen["text"], seen

    def check_load(self) -> None:
        summary = self.run("--concurrency", "1,4", "--requests", "8", "--max-tokens", "16", "--prompt-tokens", "200")
        assert [stage["name"] for stage in summary["stages"]] == ["c1", "c4"], summary
        for stage in summary["stages"]:
            assert stage["requests"]["ok"] == 8, stage["requests"]
            ttft_ms = stage["latency_ms"]["ttft"]
            assert ttft_ms["n"] == 8 and ttft_ms["min"] > 0, ttft_ms
            # On a starved machine an answer may be read at once: its TPOT is then unknown, never made up.
            tpot = stage["latency_ms"]["tpot"]
            assert tpot["n"] + tpot["excluded"] == 8, tpot
            assert stage["tokens"]["source"] == "usage", stage["tokens"]
            assert stage["client"]["clock"] == "kernel", stage["client"]

    def check_more_users_than_slots_queue(self) -> None:
        if self.kind != "llamacpp":
            return
        summary = self.run("-c", "2,6", "-n", "12", "--max-tokens", "24", "--prompt-tokens", "200")
        two, six = (stage["latency_ms"]["ttft"]["p50"] for stage in summary["stages"])
        assert six > two, f"six users on two slots must wait: {two} ms, {six} ms"

    def check_completions(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder) / "run")
            url = f"{self.url}/v1/completions"
            summary = ttft(self.binary, "run", url, "--out", out, "-c", "1", "-n", "3", "--max-tokens", "8")
        assert summary["run"]["dialect"] == "openai-completions", summary["run"]
        assert summary["stages"][0]["requests"]["ok"] == 3, summary["stages"][0]["requests"]

    def check_closed_connections_are_no_errors(self) -> None:
        # llama.cpp closes after every stream although it promises keep-alive; vLLM after 5 s idle.
        summary = self.run("-c", "2", "-n", "10", "--max-tokens", "4", "--prompt-tokens", "50")
        assert summary["stages"][0]["requests"]["failed"] == 0, summary["stages"][0]["requests"]

    def check_prompt_too_long_is_told_before_the_run(self) -> None:
        line = [self.binary, "run", self.url, "-c", "1", "-n", "1", "--prompt-tokens", "20000"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        assert done.returncode == 2, f"exit {done.returncode}\n{done.stderr}"
        assert "20000 tokens, but the model's context is" in done.stderr, done.stderr

    def check_prompt_that_the_server_finds_too_long(self) -> None:
        # One that fits beside it: the run is warned of, and goes on.
        prompts = [{"prompt": "one two three four"}, {"prompt": "one two three four " * 5000}]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(prompt) + "\n" for prompt in prompts)
            file.flush()
            summary = self.run("-c", "1", "-n", "2", "--max-tokens", "4", "--dataset", file.name, warmup=0)
        requests = summary["stages"][0]["requests"]
        assert requests["ok"] == 1 and requests["errors"] == {"http_error": 1}, requests

    def check_unknown_model(self) -> None:
        if self.kind != "vllm":
            return
        summary = self.run("-c", "1", "-n", "1", "--model", "no-such-model", warmup=0, code=3)
        assert summary["stages"][0]["requests"]["errors"] == {"http_not_found": 1}, summary


def main() -> None:
    kind, binary, url = sys.argv[1:4]
    wait_for(url, 400)
    checks = Checks(kind, binary, url)
    names = [name for name in dir(checks) if name.startswith("check_")]
    for name in names:
        getattr(checks, name)()
        print(f"ok {kind}: {name.removeprefix('check_').replace('_', ' ')}", flush=True)
    print(f"{len(names)} passed, 0 failed")


if __name__ == "__main__":
    main()
