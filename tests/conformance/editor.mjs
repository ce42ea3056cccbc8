// editor.mjs PROGRAM WORKSPACE OUTSIDE MODEL: a whole conversation by the official library of the Agent Client
// Protocol, which checks each message that it gets. Prints what it saw, as one JSON object.
import * as acp from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

const [program, workspace, outside, model] = process.argv.slice(2);
const seen = { kinds: [], words: "", asked: [], buffers: [], statuses: {} };

function start() {
	const child = spawn(program, ["acp", "--model", model, "--ask", "read"], {
		stdio: ["pipe", "pipe", "inherit"],
		cwd: workspace,
	});
	return { child, stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)) };
}

function editor(answer) {
	return acp.client({ name: "editor" })
		.onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
			seen.asked.push(params.options.map((option) => option.kind));
			return { outcome: { outcome: "selected", optionId: answer } };
		})
		.onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
			seen.buffers.push(params.path);
			throw acp.RequestError.resourceNotFound(params.path);
		})
		.onNotification(acp.methods.client.session.update, ({ params }) => {
			const { update } = params;
			seen.kinds.push(update.sessionUpdate);
			if (update.sessionUpdate === "agent_message_chunk") seen.words += update.content.text;
			if (update.toolCallId) seen.statuses[update.toolCallId] = update.status;
		});
}

async function connect(context) {
	return context.request(acp.methods.agent.initialize, {
		protocolVersion: acp.PROTOCOL_VERSION,
		clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
	});
}

const first = start();
const session = await editor("once").connectWith(first.stream, async (context) => {
	seen.version = (await connect(context)).protocolVersion;
	const made = await context.request(acp.methods.agent.session.new, { cwd: workspace, mcpServers: [] });
	const sessionId = made.sessionId;
	const prompt = (text) => context.request(acp.methods.agent.session.prompt, {
		sessionId, prompt: [{ type: "text", text }] });
	seen.stop = (await prompt(`read ${outside}`)).stopReason;
	const sleeping = prompt("sleep");
	while (!Object.values(seen.statuses).includes("in_progress")) await new Promise((go) => setTimeout(go, 10));
	await context.notify(acp.methods.agent.session.cancel, { sessionId });
	seen.cancelled = (await sleeping).stopReason;
	await context.request(acp.methods.agent.session.setMode, { sessionId, modeId: "plan" });
	const set = await context.request(acp.methods.agent.session.setConfigOption, {
		sessionId, configId: "agent", value: "reviewer" });
	seen.options = set.configOptions.map((option) => [option.id, option.currentValue]);
	return sessionId;
});
first.child.stdin.end();
seen.code = (await once(first.child, "exit"))[0];

const second = start();
const before = { ...seen, statuses: {}, kinds: [], words: "" };
Object.assign(seen, before);
await editor("no").connectWith(second.stream, async (context) => {
	await connect(context);
	const list = await context.request(acp.methods.agent.session.list, { cwd: workspace });
	seen.listed = list.sessions.map((one) => one.sessionId).includes(session);
	await context.request(acp.methods.agent.session.load, { sessionId: session, cwd: workspace, mcpServers: [] });
	seen.loaded = { kinds: seen.kinds, words: seen.words };
	try {
		await context.request(acp.methods.agent.session.prompt, { sessionId: "none", prompt: [] });
	} catch (error) {
		seen.refused = error.code;
	}
	await context.request(acp.methods.agent.session.close, { sessionId: session });
});
second.child.stdin.end();
await once(second.child, "exit");
console.log(JSON.stringify(seen));
