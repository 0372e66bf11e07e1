# SPDX-License-Identifier: Apache-2.0
"""Latency of `einc lsp` on a model, request by request, as an editor sees it: language_server.py EINC [FILE] [ROUNDS].

Each round edits a line, waits for the diagnostics, and then asks; what is printed is the median and the largest time of each method.
"""
import json, os, statistics, subprocess, sys, time

einc, path = sys.argv[1], os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "examples/gpt2.ein")
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
server = subprocess.Popen([einc, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
uri, text, count = "file://" + path, open(path).read(), 0


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def receive():
    length = 0
    while (line := server.stdout.readline().strip()):
        length = int(line.split(b":")[1])
    return json.loads(server.stdout.read(length))


def ask(method, params):
    global count
    count += 1
    send({"id": count, "method": method, "params": params})
    while (answer := receive()).get("id") != count:
        pass
    return answer["result"]


def diagnostics(version):
    while True:
        message = receive()
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"].get("version") == version:
            return message["params"]["diagnostics"]


ask("initialize", {"capabilities": {}})
send({"method": "initialized", "params": {}})
document = {"uri": uri}
send({"method": "textDocument/didOpen", "params": {"textDocument": {**document, "languageId": "ein", "version": 0, "text": text}}})
assert diagnostics(0) == []
lines = text.split("\n")
row = max(i for i, line in enumerate(lines) if "einsum" in line)
place = {"line": row, "character": lines[row].index("einsum") + 8}
requests = {
    "hover": {"position": place},
    "definition": {"position": place},
    "references": {"position": place},
    "completion": {"position": place},
    "rename": {"position": place, "newName": "renamed_value"},
    "documentSymbol": {},
    "formatting": {"options": {"tabSize": 2, "insertSpaces": True}},
    "inlayHint": {"range": {"start": {"line": 0, "character": 0}, "end": {"line": len(lines), "character": 0}}},
    "codeAction": {"range": {"start": place, "end": place}, "context": {"diagnostics": []}},
}
times = {name: [] for name in ["diagnostics after an edit", *requests]}
for version in range(1, rounds + 1):
    change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "# edit %d\n" % version}
    begin = time.perf_counter()
    send({"method": "textDocument/didChange", "params": {"textDocument": {**document, "version": version}, "contentChanges": [change]}})
    assert diagnostics(version) == []
    times["diagnostics after an edit"].append(time.perf_counter() - begin)
    for name, params in requests.items():
        for key in ("position",):
            if key in params:
                params[key] = {"line": row + version, "character": place["character"]}
        begin = time.perf_counter()
        ask("textDocument/" + name, {"textDocument": document, **params})
        times[name].append(time.perf_counter() - begin)
for name, seconds in times.items():
    print("%-26s median %7.2f ms   most %7.2f ms" % (name, 1e3 * statistics.median(seconds), 1e3 * max(seconds)))
ask("shutdown", None)
send({"method": "exit", "params": None})
sys.exit(server.wait())
