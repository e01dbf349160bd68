// Who gets in, and what a page may do.
import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import { TOKENS, Proxy, request } from "./world.mjs";
import { visit, done, screens } from "./pages.mjs";

const form = (fields) => new URLSearchParams(fields).toString();

export async function signing_in_sets_a_cookie_that_fits_the_transport(stage) {
  const page = await visit(stage);
  const [cookie, ...others] = await page.context().cookies();
  assert.equal(others.length, 0);
  assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.secure, cookie.path, cookie.expires], ["semel-console", true, "Strict", false, "/", -1]);
  assert.ok(!decodeURIComponent(cookie.value).includes(TOKENS.admin));
  await page.click("text=Sign out");
  await page.waitForSelector("#token");
  assert.equal((await page.context().cookies()).length, 0);
  await done(page);
  // Behind a proxy that was reached over TLS.
  const answer = await request(stage.gateway.admin, "POST", "/console/sign-in", {
    "content-type": "application/x-www-form-urlencoded", host: "semel.example", origin: "https://semel.example", "x-forwarded-proto": "https",
  }, form({ token: TOKENS.oncall, back: "/console/operations" }));
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.location, "/console/operations");
  assert.match(answer.headers["set-cookie"][0], /^__Host-semel=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
}

export async function the_sixth_wrong_token_is_not_looked_at(stage) {
  const { Gateway, config } = await import("./world.mjs");
  // A gateway of its own: this address is not let in for a while.
  const gateway = await new Gateway(stage.semel, stage.directory).start("guessed", config({ service: stage.service.port, store: stage.store }));
  stage.open.push(gateway);
  const page = await visit(stage, { sign: false });
  for (let attempt = 1; attempt <= 6; attempt += 1) {
    await page.goto(gateway.console);
    await page.fill("#token", attempt < 6 ? `wrong-${attempt}` : TOKENS.admin);
    const [answer] = await Promise.all([page.waitForResponse((response) => response.request().method() === "POST"), page.click("button.primary")]);
    assert.equal(answer.status(), attempt < 6 ? 401 : 429);
  }
  assert.match(await page.textContent("[role=alert]"), /Too many wrong tokens/);
  await done(page);
}

export async function every_page_has_its_header_fields(stage) {
  const page = await visit(stage);
  const [cookie] = await page.context().cookies();
  for (const target of [...Object.values(await screens(stage)), "/sign-in", "/nothing", "/operations/nothing"]) {
    for (const signed of [true, false]) {
      const headers = signed ? { cookie: `${cookie.name}=${cookie.value}` } : {};
      const answer = await request(stage.gateway.admin, "GET", `/console${target}`, headers);
      const policy = answer.headers["content-security-policy"];
      assert.ok(policy.startsWith("default-src 'none';") && policy.includes("frame-ancestors 'none'") && !policy.includes("unsafe"), `${target}: ${policy}`);
      assert.equal(answer.headers["cache-control"], "no-store", target);
      assert.equal(answer.headers["x-content-type-options"], "nosniff", target);
      assert.equal(answer.headers["referrer-policy"], "same-origin", target);
      assert.equal(answer.headers["x-frame-options"], "DENY", target);
      assert.ok(!/ style=|<style|<script>| on[a-z]+=/.test(answer.body), `${target}: nothing inline`);
      if (!signed && target !== "/sign-in" && target !== "/nothing") assert.equal(answer.status, 401, target);
    }
  }
  await done(page);
}

export async function no_screen_violates_the_content_security_policy(stage) {
  const page = await visit(stage);
  for (const target of Object.values(await screens(stage))) {
    await page.goto(stage.gateway.console + target);
    await page.waitForSelector("main");
  }
  // The policy is in force: what is put into the page does not run.
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.owned = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.owned), undefined);
  assert.equal(stage.violations.filter((text) => /inline/.test(text)).length, 1);
  stage.violations = stage.violations.filter((text) => !/inline/.test(text));
  assert.deepEqual(stage.violations, []);
  await done(page);
}

export async function forms_of_other_pages_are_refused(stage) {
  const page = await visit(stage);
  const [cookie] = await page.context().cookies();
  const token = await page.inputValue("input[name=form_token]");
  const own = `http://${stage.gateway.admin}`;
  const send = (headers, fields) => request(stage.gateway.admin, "POST", "/console/sign-out", {
    "content-type": "application/x-www-form-urlencoded", cookie: `${cookie.name}=${cookie.value}`, ...headers,
  }, form(fields));
  for (const [headers, fields] of [
    [{ origin: own }, {}],
    [{ origin: own }, { form_token: "guess" }],
    [{ origin: "https://evil.example" }, { form_token: token }],
    [{ origin: "null" }, { form_token: token }],
    [{}, { form_token: token }],
    [{ origin: own, "sec-fetch-site": "cross-site" }, { form_token: token }],
    [{ origin: own, "sec-fetch-site": "same-site" }, { form_token: token }],
  ]) {
    const answer = await send(headers, fields);
    assert.equal(answer.status, 403, JSON.stringify([headers, fields]));
    assert.equal(answer.headers["set-cookie"], undefined);
  }
  assert.equal((await send({ origin: own, "sec-fetch-site": "same-origin" }, { form_token: token })).status, 303);
  // A page of another origin, in the same browser.
  const evil = http.createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form method="post" action="${stage.gateway.console}/sign-out"><input name="form_token" value="${token}"><button>Win</button></form>`);
  }).listen(0, "127.0.0.1");
  await once(evil, "listening");
  await page.goto(`http://localhost:${evil.address().port}/`);
  const [answer] = await Promise.all([page.waitForResponse((response) => response.request().method() === "POST"), page.click("button")]);
  assert.ok([401, 403].includes(answer.status()), `${answer.status()}`);
  await page.goto(stage.gateway.console);
  await page.waitForSelector(".who");
  evil.closeAllConnections();
  evil.close();
  stage.asked = stage.asked.filter((url) => !url.startsWith("http://localhost:"));
  await done(page);
}

export async function no_page_is_framed(stage) {
  const framing = http.createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<iframe src="${stage.gateway.console}/sign-in"></iframe>`);
  }).listen(0, "127.0.0.1");
  await once(framing, "listening");
  const page = await visit(stage, { sign: false });
  const failed = page.waitForEvent("console", (message) => /frame/i.test(message.text()));
  await page.goto(`http://127.0.0.1:${framing.address().port}/`);
  await failed;
  assert.equal(await page.frames().at(-1).locator("#token").count(), 0);
  framing.closeAllConnections();
  framing.close();
  stage.violations = stage.violations.filter((text) => !/frame/i.test(text));
  await done(page);
}

export async function two_instances_behind_one_address_share_sessions(stage) {
  const { Gateway, config } = await import("./world.mjs");
  const other = await new Gateway(stage.semel, stage.directory).start("other", config({ service: stage.service.port, store: stage.store }));
  stage.open.push(other);
  const ports = [stage.gateway, other].map(({ admin }) => admin.split(":")[1]);
  const proxy = await new Proxy(ports).start();
  const page = await visit(stage, { at: `${proxy.address}/console` });
  for (let turn = 0; turn < 4; turn += 1) {
    await page.goto(`${proxy.address}/console/operations`);
    await page.waitForSelector(".who");
  }
  assert.ok(proxy.turn >= 8, "both were asked");
  await done(page);
  proxy.server.closeAllConnections();
  proxy.server.close();
}

export async function a_reader_has_no_buttons_and_foreign_tenants_are_404(stage) {
  const lost = await stage.gateway.operation("lost-0-0a4f6c1e");
  const foreign = await stage.gateway.operation("refund-0-9d577f0a");
  const reader = await visit(stage, { as: "support" });
  for (const target of Object.values(await screens(stage))) {
    await reader.goto(stage.gateway.console + target);
    const forms = await reader.locator("form[method=post]").evaluateAll((forms) => forms.map((form) => new URL(form.action).pathname));
    assert.deepEqual(forms, ["/console/sign-out"], target);
    assert.equal(await reader.locator("main a:has-text('Settle'), main button:has-text('Poll'), main button:has-text('Reveal')").count(), 0, target);
  }
  await done(reader);
  const limited = await visit(stage, { as: "eu" });
  assert.equal((await limited.goto(`${stage.gateway.console}/operations/${foreign.operation_id}`)).status(), 404);
  assert.equal((await limited.goto(`${stage.gateway.console}/operations/${lost.operation_id}`)).status(), 200);
  await limited.goto(`${stage.gateway.console}/operations`);
  assert.ok(!(await limited.textContent("main")).includes("acct_us_014"));
  await limited.goto(stage.gateway.console);
  assert.equal(await limited.textContent("[data-live=unknown]"), "4");
  await done(limited);
}

export async function an_identity_aware_proxy_signs_its_users_in(stage) {
  const { Gateway, config } = await import("./world.mjs");
  const identity = `[admin.identity]
header = "x-forwarded-user"
roles = { header = "x-forwarded-groups", reader = "support", operator = "oncall" }
trusted_peers = ["127.0.0.1"]
`;
  const settings = config({ service: stage.service.port, store: stage.store, users: false, rest: identity });
  const gateway = await new Gateway(stage.semel, stage.directory).start("proxied", settings);
  stage.open.push(gateway);
  await gateway.pay("lost-proxied-7f21", { does: "lose" });
  // A stand-in for oauth2-proxy: it sets the headers of a user whom it has signed in, whatever the browser sends.
  const port = gateway.admin.split(":")[1];
  const proxy = await new Proxy([port], { "x-forwarded-user": "ada@example.com", "x-forwarded-groups": "staff,oncall" }).start();
  const page = await visit(stage, { sign: false });
  await page.goto(`${proxy.address}/console/operations?key=lost-proxied-7f21`);
  assert.match(await page.textContent(".who"), /ada@example\.com\s+operator/);
  assert.equal((await page.context().cookies()).length, 0);
  await page.locator("a.row").first().click();
  await page.click("text=Settle…");
  await page.fill("#found", "Bank: transfer 17");
  await page.check("input[value=completed]");
  await page.fill("#reason", "seen");
  await page.click("text=Look it over");
  await page.waitForSelector("text=What the next retry will get");
  await page.click("main button:has-text('Settle')");
  await page.waitForURL("**?done=settled");
  assert.match(await page.textContent(".timeline"), /proxy:ada@example\.com/);
  // Around the proxy, and as a user without a role, nobody gets in.
  assert.equal((await request(gateway.admin, "GET", "/console")).status, 401);
  const without = await new Proxy([port], { "x-forwarded-user": "eve", "x-forwarded-groups": "staff" }).start();
  assert.equal((await request(`127.0.0.1:${without.port}`, "GET", "/console")).status, 401);
  await done(page);
  for (const { server } of [proxy, without]) {
    server.closeAllConnections();
    server.close();
  }
}

export async function nothing_is_asked_of_any_other_host(stage) {
  assert.ok(stage.asked.length > 100);
  assert.deepEqual(stage.asked.filter((url) => !url.startsWith("http://127.0.0.1:")), []);
}
