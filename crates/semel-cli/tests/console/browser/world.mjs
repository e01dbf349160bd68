// Gateways with a service behind them, and operations in every state, made by real requests.
import http from "node:http";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";

export const TOKENS = { admin: "the-token-of-the-admins", oncall: "oncall-0f3a9c51", support: "support-77ab12c4", eu: "eu-oncall-b1946ac9" };

const listen = async (server, port = 0) => {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
};

async function bytes(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/// A service that does what the path says, and remembers what it did.
class Service {
  executions = [];
  events = [];
  refusesEvents = true;
  held = new Map();
  outcomes = new Map();

  async start() {
    this.server = http.createServer((request, response) => this.serve(request, response).catch(() => response.destroy()));
    this.port = await listen(this.server);
    return this;
  }

  async serve(request, response) {
    const body = (await bytes(request)).toString();
    if (request.method === "GET" && request.url.startsWith("/outcomes/")) {
      const id = request.url.slice("/outcomes/".length).split("?")[0];
      const outcome = this.outcomes.get(id);
      response.writeHead(outcome ? 200 : 503, { "content-type": "application/json" });
      response.end(JSON.stringify(outcome ?? { error: "not known yet" }));
      return;
    }
    if (request.url === "/events") {
      if (!this.refusesEvents) this.events.push(body);
      response.writeHead(this.refusesEvents ? 422 : 204).end();
      return;
    }
    const command = JSON.parse(body || "{}");
    this.executions.push(request.headers["semel-operation-id"]);
    switch (command.does) {
      case "lose":
        request.socket.destroy();
        return;
      case "hold":
        this.held.set(command.as, response);
        return;
      case "refuse":
        response.writeHead(402, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: "card_declined" }));
        return;
      case "html":
        response.writeHead(201, { "content-type": "text/html", "semel-resource": "page/1" });
        response.end("<!doctype html><h1>Stored</h1><script>window.owned = true; document.title = 'owned'</script>");
        return;
      default:
        response.writeHead(201, { "content-type": "application/json", location: "/payments/pay_1", "semel-resource": `payment/${command.resource ?? "pay_1"}` });
        response.end(JSON.stringify({ id: "pay_1", amount: command.amount }));
    }
  }

  /// Answers what was held.
  release(name) {
    const response = this.held.get(name);
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: `late_${name}` }));
  }
}

/// A reverse proxy: takes turns between its targets, sets headers, and can be told to lose answers.
export class Proxy {
  turn = 0;
  loses = null;

  constructor(targets, headers = {}) {
    Object.assign(this, { targets, headers });
  }

  async start(port = 0) {
    this.server = http.createServer((request, response) => {
      const target = this.targets[this.turn++ % this.targets.length];
      const headers = { ...request.headers, ...this.headers };
      const onward = http.request({ host: "127.0.0.1", port: target, method: request.method, path: request.url, headers }, (answer) => {
        if (this.loses?.(request)) {
          answer.resume();
          answer.on("end", () => request.socket.destroy());
          return;
        }
        response.writeHead(answer.statusCode, answer.rawHeaders);
        answer.pipe(response);
      });
      onward.on("error", () => response.destroy());
      request.pipe(onward);
    });
    this.port = await listen(this.server, port);
    this.address = `http://127.0.0.1:${this.port}`;
    return this;
  }
}

/// The way to a server, which can be cut.
export class Wire {
  sockets = new Set();

  constructor(url) {
    this.to = new URL(url);
  }

  async start() {
    this.server = net.createServer((socket) => {
      if (this.isCut) return socket.destroy();
      const onward = net.connect(Number(this.to.port), this.to.hostname);
      for (const [one, other] of [[socket, onward], [onward, socket]]) {
        this.sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => this.sockets.delete(one));
        one.pipe(other);
      }
    });
    const port = await listen(this.server);
    const url = new URL(this.to);
    url.port = String(port);
    this.url = url.href;
    return this;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isCut = false;
  }

  stop() {
    this.cut();
    this.server.close();
  }
}

/// A gateway: a process of the binary.
export class Gateway {
  constructor(semel, directory) {
    Object.assign(this, { semel, directory, log: "" });
  }

  async start(name, config) {
    this.file = path.join(this.directory, `${name}.toml`);
    fs.writeFileSync(this.file, config);
    const env = { ...process.env, RUST_LOG: "" };
    delete env.RUST_LOG;
    this.process = spawn(this.semel, ["gateway", "--config", this.file], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.process.stderr.on("data", (text) => (this.log = (this.log + text).slice(-20_000)));
    let said = "";
    // The first address of each line that is complete.
    const addresses = () => [...said.matchAll(/^.*?:\/\/([0-9.:]+).*\n/gm)].map(([, at]) => at);
    await new Promise((resolve, reject) => {
      this.process.stdout.on("data", (text) => {
        said += text;
        if (addresses().length >= 2) resolve();
      });
      this.process.on("exit", () => reject(new Error(`the gateway did not start: ${said}${this.log}`)));
    });
    [this.address, this.admin] = addresses();
    this.console = `http://${this.admin}/console`;
    return this;
  }

  async stop() {
    this.process.kill("SIGKILL");
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
  }

  /// Sends a request for a payment; what becomes of the answer does not matter.
  async pay(key, command, { tenant = "acct_eu_001", route = "payments" } = {}) {
    return request(this.address, "POST", `/${route}`, {
      "content-type": "application/json",
      "idempotency-key": key,
      "x-account-id": tenant,
    }, JSON.stringify(command));
  }

  /// So many payments, over a few connections.
  async payMany(count) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
    let next = 0;
    const payer = async () => {
      while (next < count) {
        const headers = { "content-type": "application/json", "idempotency-key": `many-${(next += 1)}-7d40`, "x-account-id": "acct_many" };
        await request(this.address, "POST", "/payments", headers, `{"amount":"1.00"}`, agent);
      }
    };
    await Promise.all(Array.from({ length: 64 }, payer));
    agent.destroy();
  }

  /// Asks the admin API.
  async api(target, { token = TOKENS.admin, method = "GET", body } = {}) {
    const answer = await request(this.admin, method, target, { authorization: `Bearer ${token}`, "content-type": "application/json" }, body && JSON.stringify(body));
    return { status: answer.status, json: JSON.parse(answer.body || "null") };
  }

  /// The operation of a key.
  async operation(key) {
    const { json } = await this.api(`/v1/operations?key=${encodeURIComponent(key)}`);
    return json.operations[0];
  }

  async show(key) {
    const { operation_id: id } = await this.operation(key);
    return (await this.api(`/v1/operations/${id}`)).json;
  }
}

/// One request with exactly these header fields.
export function request(address, method, target, headers = {}, body, agent = false) {
  const [host, port] = address.split(":");
  return new Promise((resolve, reject) => {
    const sending = http.request({ host, port, method, path: target, headers, agent }, async (answer) => {
      try {
        resolve({ status: answer.statusCode, headers: answer.headers, body: (await bytes(answer)).toString() });
      } catch (error) {
        reject(error);
      }
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

export const config = ({ service, store, users = true, rest = "" }) => `
upstream = "http://127.0.0.1:${service}"
listen = "127.0.0.1:0"
store = "${store}"
store_timeout = "5s"

[key]
min_length = 8

[scope]
tenant = ["header:x-account-id"]
trusted_peers = ["127.0.0.1"]

[admin]
listen = "127.0.0.1:0"
${users ? `token = "${TOKENS.admin}"

[[admin.user]]
name = "oncall"
token = "${TOKENS.oncall}"
role = "operator"

[[admin.user]]
name = "support"
token = "${TOKENS.support}"
role = "reader"

[[admin.user]]
name = "eu"
token = "${TOKENS.eu}"
role = "operator"
tenants = ["acct_eu_*"]
` : ""}
[[console.link]]
name = "Bank"
url = "https://bank.example/transfers?reference={operation_id}&account={tenant}"

[[console.link]]
name = "Traces"
url = "https://traces.example/search?tags=semel.operation_id%3D{operation_id}"

[console.runbook]
create_payment = "https://wiki.example/payments#doubt"

[[route]]
operation = "create_payment"
match = "POST /payments"
lease = "30s"
timeout = "25s"

[route.reconcile]
poll = "http://127.0.0.1:${service}/outcomes/{operation_id}"
every = "1h"

[[route]]
operation = "create_refund"
match = "POST /refunds"

[[route]]
operation = "send_payout"
match = "POST /payouts"
lease = "900ms"
timeout = "500ms"
${rest}`;

/// Everything that most scenarios look at.
export async function open({ semel, directory }) {
  const service = await new Service().start();
  const store = `sqlite:${path.join(directory, "semel.db")}`;
  const gateway = await new Gateway(semel, directory).start("semel", config({ service: service.port, store }));
  return { semel, directory, service, store, gateway, open: [gateway] };
}

/// Operations in every state.
export async function seed({ gateway }) {
  const done = [];
  for (let index = 0; index < 6; index += 1) done.push(gateway.pay(`paid-${index}-4c1e8f5e`, { amount: "10.00" }));
  for (let index = 0; index < 4; index += 1) done.push(gateway.pay(`lost-${index}-0a4f6c1e`, { does: "lose", amount: "25.00" }));
  for (let index = 0; index < 2; index += 1) done.push(gateway.pay(`refund-${index}-9d577f0a`, { does: "lose" }, { route: "refunds", tenant: "acct_us_014" }));
  done.push(gateway.pay("declined-11d0a2", { does: "refuse", amount: "99.00" }));
  done.push(gateway.pay("page-77c9f1aa", { does: "html" }));
  await Promise.all(done);
}

export async function close(world) {
  await Promise.all(world.open.map((gateway) => gateway.stop()));
  world.service.server.closeAllConnections();
  world.service.server.close();
}
