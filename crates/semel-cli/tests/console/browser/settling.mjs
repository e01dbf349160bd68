// Settling doubt, one by one and many at once.
import assert from "node:assert/strict";
import path from "node:path";
import { Gateway, Proxy, TOKENS, config } from "./world.mjs";
import { visit, done } from "./pages.mjs";

let made = 0;

/// An operation in doubt, of its own.
async function lose(stage, options = {}) {
  const key = `doubt-${(made += 1)}-${Math.random().toString(36).slice(2)}`;
  await stage.gateway.pay(key, { does: "lose", amount: "12.00" }, options);
  // The listing has the beginning of the key.
  return { ...(await stage.gateway.operation(key)), key };
}

const settleUrl = (stage, { operation_id: id }) => `${stage.gateway.console}/operations/${id}/settle`;
const state = async (stage, { key }) => (await stage.gateway.operation(key)).state;

async function write(page, { outcome = "completed", status = "201", found = "Bank: transfer 17", reason = "seen at the bank", body } = {}) {
  await page.fill("#found", found);
  await page.check(`input[value=${outcome}]`);
  if (status && outcome !== "not_executed") await page.fill("#status", status);
  if (body) {
    await page.fill("#content_type", "application/json");
    await page.fill("#body", body);
  }
  await page.fill("#reason", reason);
}

async function review(page, what) {
  await write(page, what);
  await page.click("text=Look it over");
  await page.waitForSelector("text=What the next retry will get");
}

const settled = (page) => Promise.all([page.waitForURL("**?done=settled"), page.click("main button:has-text('Settle')")]);

/// Entries of the audit about an operation.
async function audited(stage, { operation_id: id }, action = "settle") {
  const { json } = await stage.gateway.api(`/v1/audit?target=${id}&action=${action}`);
  return json.entries;
}

export async function a_session_that_ends_while_settling_costs_no_word(stage) {
  const operation = await lose(stage);
  const page = await visit(stage, { as: "oncall" });
  await page.goto(settleUrl(stage, operation));
  await write(page, { found: `Bank: "transfer" <17>`, reason: "seen & checked", body: `{"id":"pay_9"}` });
  await page.context().clearCookies();
  await page.click("text=Look it over");
  await page.waitForSelector("text=what you wrote is kept");
  assert.equal(await state(stage, operation), "unknown");
  await page.fill("#token", TOKENS.oncall);
  await page.click("button.primary");
  await page.waitForSelector("#found");
  assert.deepEqual(
    [await page.inputValue("#found"), await page.inputValue("#reason"), await page.inputValue("#status"), await page.inputValue("#body"), await page.isChecked("input[value=completed]")],
    [`Bank: "transfer" <17>`, "seen & checked", "201", `{"id":"pay_9"}`, true],
  );
  await page.click("text=Look it over");
  await page.waitForSelector("text=What the next retry will get");
  await settled(page);
  assert.equal(await state(stage, operation), "completed");
  await done(page);
}

export async function two_tabs_settle_one_operation_once(stage) {
  const operation = await lose(stage);
  const [one, other] = [await visit(stage, { as: "oncall" }), await visit(stage)];
  for (const page of [one, other]) {
    await page.goto(settleUrl(stage, operation));
    await review(page, { outcome: page === one ? "completed" : "failed", status: page === one ? "201" : "402" });
  }
  await settled(one);
  await other.click("main button:has-text('Settle')");
  await other.waitForSelector("text=It moved on meanwhile");
  const said = await other.textContent("main");
  assert.match(said, /Nothing was done/);
  assert.match(said, /token:oncall/);
  assert.match(said, /Settled: completed/);
  assert.equal(await state(stage, operation), "completed");
  assert.equal((await audited(stage, operation)).filter(({ result }) => result === "done").length, 1);
  for (const page of [one, other]) await done(page);
}

export async function evidence_that_lands_while_settling_is_told(stage) {
  const { gateway, service } = stage;
  const operation = await lose(stage);
  const page = await visit(stage);
  await page.goto(settleUrl(stage, operation));
  await review(page);
  // The provider answers a poll between.
  service.outcomes.set(operation.operation_id, { operation_id: operation.operation_id, attempt: 1, outcome: "completed", response: { status: 201, body: `{"id":"late"}` } });
  const other = await visit(stage, { as: "oncall" });
  await other.goto(`${gateway.console}/operations/${operation.operation_id}`);
  await other.click("text=Poll now");
  await other.waitForSelector("text=The provider is asked now");
  for (let tries = 0; (await state(stage, operation)) === "unknown"; tries += 1) {
    assert.ok(tries < 300, "the poll settles it");
    await page.waitForTimeout(50);
  }
  await page.click("main button:has-text('Settle')");
  await page.waitForSelector("text=It moved on meanwhile");
  const said = await page.textContent("main");
  assert.match(said, /the reconciler/);
  assert.match(said, /Nothing was done/);
  assert.equal((await audited(stage, operation)).filter(({ result }) => result === "done").length, 0);
  for (const page of [other]) await done(page);
  await done(page);
}

export async function a_double_click_is_one_line_of_the_audit(stage) {
  const operation = await lose(stage);
  const page = await visit(stage, { as: "oncall" });
  await page.goto(settleUrl(stage, operation));
  await review(page);
  await Promise.all([page.waitForURL("**?done=settled"), page.dblclick("main button:has-text('Settle')")]);
  const lines = await audited(stage, operation);
  assert.equal(lines.length, 1);
  assert.deepEqual([lines[0].actor, lines[0].via, lines[0].result, lines[0].state_after], ["token:oncall", "console", "done", "completed"]);
  assert.match(lines[0].session, /^[0-9a-f]{16}$/);
  await done(page);
}

export async function other_characters_than_the_last_six_confirm_nothing(stage) {
  const operation = await lose(stage, { route: "payouts" });
  const page = await visit(stage, { as: "oncall" });
  const fresh = await lose(stage);
  await page.goto(settleUrl(stage, fresh));
  const { times, now } = await stage.gateway.show(fresh.key);
  // While the lease lives, the choice is not to be had.
  if (times.lease_until > now) assert.ok(await page.isDisabled("input[value=not_executed]"));
  await page.waitForFunction(async (url) => !(await (await fetch(url)).text()).includes("Not while the lease lives"), settleUrl(stage, operation), { polling: 200 });
  await page.goto(settleUrl(stage, operation));
  await review(page, { outcome: "not_executed" });
  await page.fill("#confirm", "000000");
  await page.click("main button:has-text('Settle')");
  await page.waitForSelector("text=These are not the last six characters");
  assert.equal(await state(stage, operation), "unknown");
  await page.fill("#confirm", operation.operation_id.slice(-6));
  await settled(page);
  assert.equal(await state(stage, operation), "failed_retryable");
  await done(page);
}

export async function a_stored_page_is_shown_as_text_and_downloaded_as_a_file(stage) {
  const operation = await stage.gateway.operation("page-77c9f1aa");
  const page = await visit(stage, { as: "oncall", acceptDownloads: true });
  await page.goto(`${stage.gateway.console}/operations/${operation.operation_id}`);
  assert.ok(!(await page.content()).includes("<h1>Stored"), "hidden until revealed");
  await page.click("text=Reveal the body");
  await page.waitForSelector("pre");
  assert.match(await page.textContent("pre"), /<h1>Stored<\/h1><script>window\.owned/);
  assert.equal(await page.evaluate(() => window.owned), undefined);
  assert.match(await page.textContent("main"), /page-77c9f1aa/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download")]);
  assert.equal(download.suggestedFilename(), `${operation.operation_id}.bin`);
  assert.equal((await audited(stage, operation, "reveal")).length, 2);
  await done(page);
}

export async function doubt_is_settled_by_plain_forms(stage) {
  const operation = await lose(stage);
  const page = await visit(stage, { as: "oncall", javaScriptEnabled: false });
  await page.goto(`${stage.gateway.console}/operations/${operation.operation_id}`);
  await page.click("text=Settle…");
  await review(page, { outcome: "failed", status: "402", body: `{"error":"declined"}` });
  const answer = await page.textContent(".answer");
  assert.match(answer, /402/);
  assert.match(answer, /"declined"/);
  await settled(page);
  assert.equal(await state(stage, operation), "failed_replayable");
  // The retry gets what the page had said.
  const retried = await stage.gateway.pay(operation.key, { does: "lose", amount: "12.00" });
  assert.deepEqual([retried.status, retried.body, retried.headers["idempotent-replayed"]], [402, `{"error":"declined"}`, "true"]);
  await done(page);
}

export async function doubt_is_settled_by_keyboard_alone(stage) {
  const operation = await lose(stage);
  const page = await visit(stage, { as: "oncall" });
  const press = (key) => page.keyboard.press(key);
  const reach = async (what) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await press("Tab");
      if (await page.evaluate((what) => document.activeElement.matches(what), what)) return;
    }
    throw new Error(`${what} cannot be reached by Tab`);
  };
  await page.goto(`${stage.gateway.console}/operations/${operation.operation_id}`);
  await press("s");
  await page.waitForSelector("#found");
  await reach("#found");
  await page.keyboard.type("Bank: transfer 17");
  await reach("input[name=outcome]");
  await press("Space");
  await reach("#status");
  await page.keyboard.type("201");
  // A slip of the finger sends nothing.
  await press("Enter");
  await reach("#reason");
  await page.keyboard.type("seen at the bank");
  await reach("button[value=review]");
  await press("Enter");
  await page.waitForSelector("text=What the next retry will get");
  await reach("main form button:not([disabled])");
  await press("Enter");
  await page.waitForURL("**?done=settled");
  assert.equal(await state(stage, operation), "completed");
  await done(page);
}

export async function a_lost_answer_is_not_sent_again(stage) {
  const operation = await lose(stage);
  const proxy = await new Proxy([stage.gateway.admin.split(":")[1]]).start();
  let sent = 0;
  const page = await visit(stage, { as: "oncall", at: `${proxy.address}/console` });
  await page.goto(`${proxy.address}/console/operations/${operation.operation_id}/settle`);
  await review(page);
  proxy.loses = (request) => request.method === "POST" && (sent += 1) > 0;
  await page.click("main button:has-text('Settle')");
  await page.waitForSelector("text=The answer was lost: it may be settled, or not. Nothing is sent again.");
  assert.equal(sent, 1);
  proxy.loses = null;
  await page.click("text=Look at the operation");
  await page.waitForSelector("h1");
  assert.equal(await state(stage, operation), "completed");
  assert.equal((await audited(stage, operation)).length, 1);
  await done(page);
  proxy.server.closeAllConnections();
  proxy.server.close();
}

export async function many_are_settled_stopped_and_resumed(stage) {
  const tenant = "acct_bulk_500";
  const many = [];
  for (let begun = 0; begun < 500; begun += 50) {
    many.push(...(await Promise.all(Array.from({ length: 50 }, async (_, index) => {
      const key = `bulk-${begun + index}-5f0c21`;
      await stage.gateway.pay(key, { does: "lose" }, { tenant });
      return key;
    }))));
  }
  const page = await visit(stage);
  assert.equal((await page.goto(`${stage.gateway.console}/bulk`)).status(), 400);
  assert.match(await page.textContent("main"), /everything that is in doubt/);
  await page.goto(`${stage.gateway.console}/operations?tenant=${tenant}&state=unknown`);
  await page.click("text=Settle many…");
  await page.waitForSelector("text=500 operations");
  assert.ok(await page.isDisabled("input[value=not_executed]"));
  await page.check("input[value=completed]");
  await page.fill("#reason", "the bank's list of 19 November");
  await page.fill("#count", "499");
  await page.click("text=Freeze this list");
  await page.waitForSelector("text=Type 500 to confirm");
  await page.check("input[value=completed]");
  await page.fill("#count", "500");
  await page.click("text=Freeze this list");
  await page.waitForURL(/bulk\/[0-9a-f-]{36}$/);
  const url = page.url();
  // Three of them move on before it begins.
  for (const key of many.slice(100, 103)) {
    const { operation_id: id } = await stage.gateway.operation(key);
    await stage.gateway.api(`/v1/operations/${id}/resolve`, { method: "POST", token: TOKENS.oncall, body: { outcome: "failed", reason: "declined", attempt: 1 } });
  }
  await page.click("text=Begin");
  await page.waitForFunction(() => Number(document.querySelector("[data-tried]").textContent) > 0);
  await page.click("text=Stop");
  await page.waitForSelector("text=Stopped.");
  const stopped = Number(await page.textContent("[data-tried]"));
  assert.ok(stopped < 500, `${stopped}`);
  await page.reload();
  assert.equal(Number(await page.textContent("[data-tried]")), stopped);
  await done(page);
  // Later, by its address.
  const later = await visit(stage);
  await later.goto(url);
  await later.click("text=Resume");
  await later.click("text=Go on");
  await later.waitForSelector("text=Done.", { timeout: 45_000 });
  assert.deepEqual([await later.textContent("[data-settled]"), await later.textContent("[data-failed]")], ["497", "3"]);
  assert.equal(await later.locator(".badge >> text=Left alone").count(), 3);
  const { json } = await stage.gateway.api(`/v1/operations?tenant=${tenant}&state=unknown&limit=1`);
  assert.equal(json.operations.length, 0);
  // The reader cannot even look.
  const reader = await visit(stage, { as: "support" });
  assert.equal((await reader.goto(url)).status(), 403);
  for (const page of [later, reader]) await done(page);
}

export async function events_are_republished_and_dropped(stage) {
  const { service } = stage;
  const outbox = `[outbox]\nsink = "http://127.0.0.1:${service.port}/events"\nsecret = "whsec_YS1zZWNyZXQtb2YtdGhlLXByb3ZpZGVycy1vd24tY2hvaWNl"\nattempts = 1\nretry_every = "10ms"\n`;
  const store = `sqlite:${path.join(stage.directory, "events.db")}`;
  const gateway = await new Gateway(stage.semel, stage.directory).start("events", config({ service: service.port, store, rest: outbox }));
  stage.open.push(gateway);
  const page = await visit(stage, { at: gateway.console });
  for (let tries = 0; ; tries += 1) {
    await page.goto(`${gateway.console}/outbox?dead_letter=true`);
    if ((await page.locator("a.row").count()) === 2) break;
    assert.ok(tries < 200, "both are refused");
    await page.waitForTimeout(50);
  }
  assert.equal(await page.locator("tbody b").count(), 0);
  assert.match(await page.textContent("tbody"), /answered 422/);
  const rows = await page.locator("a.row").evaluateAll((rows) => rows.map((row) => row.href));
  service.refusesEvents = false;
  await page.goto(rows[0]);
  await page.click('form[action$="/requeue"] button');
  await page.waitForURL("**/outbox");
  await page.goto(rows[1]);
  await page.fill("#reason", "the partner has closed");
  await page.click('form[action$="/drop"] button.danger');
  await page.waitForURL("**/outbox");
  for (let tries = 0; service.events.length < 1; tries += 1) {
    assert.ok(tries < 200, "it is published");
    await page.waitForTimeout(50);
  }
  const { json } = await gateway.api("/v1/audit?limit=10");
  assert.ok(json.entries.some(({ action, via }) => action === "republish" && via === "console"));
  assert.ok(json.entries.some(({ action, reason }) => action === "drop" && reason === "the partner has closed"));
  assert.equal((await page.goto(rows[1])).status(), 404);
  await done(page);
}

export async function who_did_what_is_in_the_audit(stage) {
  const operation = await lose(stage);
  const page = await visit(stage);
  await page.goto(settleUrl(stage, operation));
  await review(page, { reason: "=HYPERLINK(\"https://evil.example\") <b>bold</b>" });
  await settled(page);
  await page.click("text=Audit of this operation");
  await page.waitForSelector("td >> text=settle");
  assert.match(await page.textContent("tbody tr"), /token:admin/);
  assert.equal(await page.locator("tbody b").count(), 0);
  const csv = await page.evaluate(async () => (await fetch(document.querySelector("a[href*='format=csv']").href)).text());
  assert.ok(csv.includes("HYPERLINK") && !/(^|,)"?=/m.test(csv), csv);
  const { json } = await stage.gateway.api("/v1/audit?action=sign_in&limit=5");
  assert.ok(json.entries.every(({ via, kind }) => via === "console" && kind));
  await done(page);
}
