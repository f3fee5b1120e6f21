#!/bin/sh
# mcp_approve.sh - tools that the user must approve: asked through the client, in both protocol versions.
export ATOLL_MCP_APPROVE=write_file
. "$(dirname "$0")/daemon.lib"

# asks STEP...: runs a client with elicitation; the steps are below.
asks() { python3 client.py "$url" "$key" "$@"; }
client() {
	cat >client.py <<-'PY'
		import http.client, json, os, signal, subprocess, sys, time
		url, key, step = sys.argv[1:4]
		V, M = "2026-07-28", "io.modelcontextprotocol/"
		def post(doc, **headers):
		    c = http.client.HTTPConnection(url[7:], timeout=120)
		    c.request("POST", "/mcp", json.dumps(doc), {"Authorization": "Bearer " + key,
		              "Accept": "application/json, text/event-stream", **headers})
		    return c.getresponse()
		def modern(args={"path": "f", "content": "x"}, can={"elicitation": {}}, **more):
		    r = post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write_file", "arguments": args,
		              "_meta": {M + "protocolVersion": V, M + "clientCapabilities": can}, **more}},
		             **{"MCP-Protocol-Version": V, "Mcp-Method": "tools/call", "Mcp-Name": "write_file"})
		    return json.loads(r.read())
		yes = {"approve": {"action": "accept", "content": {"allow": True}}}
		no = {"approve": {"action": "accept", "content": {"allow": False}}}
		def asked():
		    r = modern()["result"]
		    assert r["resultType"] == "input_required", r
		    assert "write_file" in r["inputRequests"]["approve"]["params"]["message"], r
		    return r["requestState"]
		def code(r): return r["result"].get("structuredContent", {}).get("code")
		def servers():
		    return subprocess.run(["pgrep", "-P", sys.argv[4], "-x", "atoll-server"], capture_output=True, text=True).stdout.split()
		def replace(kill): # the server, by another one
		    was = servers()
		    kill(was)
		    end = time.time() + 60
		    while not set(servers()) - set(was):
		        assert time.time() < end, "no other server"
		        time.sleep(0.02)
		def old(answer, between=lambda: None, asked=lambda m: None):
		    r = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
		              "capabilities": {"elicitation": {}}}})
		    r.read()
		    head = {"Mcp-Session-Id": r.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
		    between()
		    r = post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "write_file",
		              "arguments": {"path": "g", "content": "y"}}}, **head)
		    while line := r.readline():
		        if not line.startswith(b"data: "): continue
		        m = json.loads(line[6:])
		        if m.get("method") == "elicitation/create":
		            if asked(m): continue # and never answer
		            for id in ("ask-999999", m["id"], m["id"]): # made up; right; twice
		                a = post({"jsonrpc": "2.0", "id": id, "result": answer}, **head)
		                a.read()
		                assert a.status == 202, a.status
		        else: return m
		if step == "allowed":
		    assert modern(inputResponses=yes, requestState=asked())["result"]["isError"] is False
		elif step == "refused":
		    assert code(modern(inputResponses=no, requestState=asked())) == "not_approved"
		    assert code(modern(inputResponses={"approve": {"action": "decline"}}, requestState=asked())) == "not_approved"
		elif step == "forged":
		    s = asked()
		    for state in (s + "x", "x" + s, s.replace(".", ".A", 1), "", ".", "x" * 70000):
		        assert modern(inputResponses=yes, requestState=state)["error"]["code"] == -32602, state
		    assert modern(args={"path": "f", "content": "other"}, inputResponses=yes, requestState=s)["error"]["code"] == -32602
		    assert modern(inputResponses=yes)["result"]["resultType"] == "input_required"
		    assert modern(inputResponses=None, requestState=s)["error"]["code"] == -32602
		    assert modern(inputResponses={"approve": 5}, requestState=s)["result"]["resultType"] == "input_required"
		elif step == "mute":
		    assert code(modern(can={})) == "not_approved"
		elif step == "old":
		    assert old({"action": "accept", "content": {"allow": True}})["result"]["isError"] is False
		    assert code(old({"action": "decline"})) == "not_approved"
		elif step == "killed":
		    kill = lambda: replace(lambda was: [os.kill(int(p), signal.SIGKILL) for p in was])
		    ids = []
		    for _ in range(2):
		        m = old({"action": "accept", "content": {"allow": True}}, between=kill, asked=lambda m: ids.append(m["id"]))
		        assert m["result"]["isError"] is False, m
		    assert ids[0] != ids[1], "a late answer to the first would be taken for the second: %s" % ids
		elif step == "replaced":
		    reload = lambda m: replace(lambda was: os.kill(int(sys.argv[4]), signal.SIGHUP)) or True
		    m = old({"action": "accept", "content": {"allow": True}}, asked=reload)
		    assert m["error"]["code"] == -32603 and "call again" in m["error"]["message"], m
	PY
}

a_tool_runs_after_the_user_approved_it() {
	client
	asks allowed
}
a_tool_does_not_run_after_the_user_declined_it() {
	client
	key=$editor # has no default box yet
	api GET /v1/boxes
	before=$(get '.items | length')
	asks refused
	api GET /v1/boxes
	is "$(get '.items | length')" "$before" "$body"
}
an_approval_is_valid_for_one_call_and_cannot_be_forged() {
	client
	asks forged
}
a_client_without_elicitation_gets_an_error() {
	client
	asks mute
}
the_session_protocol_asks_on_the_stream_of_the_call() {
	client
	asks old
}
a_session_can_be_asked_after_a_server_restart() {
	client
	asks killed "$supervisor"
}
replacing_the_server_ends_a_call_that_waits_for_approval() {
	client
	asks replaced "$supervisor"
}
the_approve_setting_accepts_only_tool_names() {
	! ATOLL_MCP_APPROVE=fly "$ATOLL" serve --listen 127.0.0.1:0 --state "$work/other" >out 2>&1 || fail "it serves"
	grep -q "'fly' is not a tool" out || fail "$(cat out)"
}

run_daemon_tests
