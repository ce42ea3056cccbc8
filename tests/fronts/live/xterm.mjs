// xterm: a terminal as a library, for tests/fronts/live_test.py: @xterm/headless of the packages in the folder of the
// first argument. One JSON object a line, one answer a line:
//	{"feed": TEXT}, {"resize": [COLUMNS, ROWS]}: the answer is {}
//	{"state": true}: the answer has the rows of the window, and the cursor's row and column
//	{"text": true}: the answer has all lines, those that scrolled away too, as they are without the width
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [packages, columns, rows] = process.argv.slice(2);
const { Terminal } = createRequire(packages + "/node_modules/")("@xterm/headless");
const terminal = new Terminal({ cols: +columns, rows: +rows, scrollback: 100000, allowProposedApi: true });

function lines() {
	const buffer = terminal.buffer.active;
	const found = [];
	for (let at = 0; at < buffer.length; at++) {
		const line = buffer.getLine(at);
		if (line.isWrapped)
			found[found.length - 1] += line.translateToString(false);
		else
			found.push(line.translateToString(false));
	}
	return found.map((line) => line.trimEnd()).join("\n");
}

function state() {
	const buffer = terminal.buffer.active;
	const window = [];
	for (let at = 0; at < terminal.rows; at++)
		window.push(buffer.getLine(buffer.baseY + at)?.translateToString(true) ?? "");
	const before = buffer.getLine(buffer.baseY + buffer.cursorY)?.translateToString(false, 0, buffer.cursorX) ?? "";
	return { rows: window, row: buffer.cursorY, column: before.length };
}

for await (const line of createInterface({ input: process.stdin })) {
	const order = JSON.parse(line);
	let answer = {};
	if (order.feed !== undefined)
		await new Promise((done) => terminal.write(order.feed, done));
	else if (order.resize)
		terminal.resize(...order.resize);
	else if (order.state)
		answer = state();
	else if (order.text)
		answer = { text: lines() };
	process.stdout.write(JSON.stringify(answer) + "\n");
}
