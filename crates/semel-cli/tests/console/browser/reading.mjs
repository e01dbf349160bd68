// What pages show, and how.
import assert from "node:assert/strict";
import path from "node:path";
import { Gateway, Wire, config } from "./world.mjs";
import { visit, done, screens } from "./pages.mjs";

export async function times_are_in_the_readers_zone_and_exact_in_the_title(stage) {
  const { operation_id: id } = await stage.gateway.operation("lost-0-0a4f6c1e");
  const page = await visit(stage, { timezoneId: "Asia/Tokyo", locale: "en-GB" });
  await page.goto(`${stage.gateway.console}/operations/${id}`);
  const time = page.locator("main time").first();
  const [at, title, text] = [await time.getAttribute("datetime"), await time.getAttribute("title"), await time.textContent()];
  assert.match(text, /ago|now/);
  const tokyo = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long", timeZone: "Asia/Tokyo" }).format(new Date(at));
  assert.equal(title, `${tokyo} (${at})`);
  await done(page);
}

export async function news_does_not_move_what_one_is_about_to_click(stage) {
  const page = await visit(stage);
  await page.goto(`${stage.gateway.console}/operations?operation=create_payment`);
  const row = page.locator("a.row").first();
  const [box, target] = [await row.boundingBox(), await row.getAttribute("href")];
  await stage.gateway.pay("newer-1-5f3a", { amount: "1.00" });
  await page.evaluate(() => document.dispatchEvent(new Event("semel:look")));
  await page.waitForSelector("#news >> text=1 newer.");
  assert.equal(await row.getAttribute("href"), target);
  // It is announced in a line that sticks to the top: the rows go down together, by that line alone, and stay in order.
  const order = await page.locator("a.row").evaluateAll((rows) => rows.map((row) => row.getAttribute("href")));
  assert.equal(order[0], target);
  assert.deepEqual(await row.boundingBox(), box, "the rows stay where they are");
  await page.click("#news >> text=Show");
  await page.waitForLoadState();
  assert.notEqual(await page.locator("a.row").first().getAttribute("href"), target);
  await done(page);
}

export async function keys_go_places_and_submit_nothing(stage) {
  const page = await visit(stage);
  await page.goto(`${stage.gateway.console}/operations?state=unknown`);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "key-filter");
  await page.keyboard.press("Escape");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("href"));
  const rows = await page.locator("a.row").evaluateAll((rows) => rows.map((row) => row.getAttribute("href")));
  await page.keyboard.press("j");
  assert.equal(await focused(), rows[0]);
  await page.keyboard.press("j");
  assert.equal(await focused(), rows[1]);
  await page.keyboard.press("k");
  assert.equal(await focused(), rows[0]);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**${rows[0]}`);
  const before = stage.service.executions.length;
  await page.keyboard.press("p");
  assert.equal(await page.textContent(":focus"), "Poll now");
  assert.equal(new URL(page.url()).pathname, rows[0]);
  await page.keyboard.press("s");
  await page.waitForURL("**/settle");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.waitForURL("**/console");
  await page.keyboard.press("?");
  await page.waitForURL("**/console/keys");
  assert.equal(stage.service.executions.length, before);
  await done(page);
}

/// In everything that a stranger chooses.
const EVIL = `"><img src=x onerror="window.owned=1"><script>window.owned=1</script>'`;

export async function what_strangers_wrote_is_shown_as_text(stage) {
  const { gateway } = stage;
  const tenant = `acct_eu_<script>window.owned=1</script>"'>`;
  const key = `evil-<script>window.owned=1</script>'><img/src=x/onerror=window.owned=1>`;
  await gateway.pay(key, { does: "lose" }, { tenant, route: "refunds" });
  const page = await visit(stage);
  await page.goto(`${gateway.console}/operations?operation=create_refund`);
  assert.ok((await page.textContent("main")).includes(tenant));
  for (const target of [`/operations?error=${encodeURIComponent(EVIL)}&resource=${encodeURIComponent(EVIL)}&tenant=${encodeURIComponent(EVIL)}`, `/operations?${encodeURIComponent(EVIL)}=1`, `/sign-in?back=${encodeURIComponent(EVIL)}`, `/operations/${encodeURIComponent(EVIL)}`]) {
    await page.goto(gateway.console + target);
    assert.equal(await page.evaluate(() => window.owned), undefined, target);
    assert.equal(await page.locator("img[src=x]").count(), 0, target);
  }
  await done(page);
}

export async function characters_that_cannot_be_seen_are_spelt_out(stage) {
  const page = await visit(stage);
  const hidden = "acct_\u202e100\u200b";
  await page.goto(`${stage.gateway.console}/operations?tenant=${encodeURIComponent(hidden)}`);
  assert.equal(await page.inputValue("input[name=tenant]"), "acct_\\u{202e}100\\u{200b}");
  assert.ok(!(await page.content()).includes("\u202e"));
  await done(page);
}

export async function everything_can_be_read_without_a_script(stage) {
  const page = await visit(stage, { javaScriptEnabled: false });
  for (const target of Object.values(await screens(stage))) {
    await page.goto(stage.gateway.console + target);
    assert.ok((await page.textContent("main")).trim().length > 20, target);
  }
  await page.goto(`${stage.gateway.console}/operations`);
  await page.selectOption("select[name=state]", "completed");
  await page.click("text=Filter");
  assert.match(page.url(), /state=completed/);
  assert.equal(await page.locator("a.row >> text=Completed").count(), await page.locator("a.row").count());
  assert.match(await page.locator("time").first().textContent(), /ago|now/);
  await page.locator("a.row").first().click();
  assert.ok((await page.textContent("main")).includes("The client gets now"));
  await done(page);
}

export async function nothing_scrolls_sideways_at_360_pixels(stage) {
  const page = await visit(stage, { viewport: { width: 360, height: 740 } });
  for (const target of Object.values(await screens(stage))) {
    await page.goto(stage.gateway.console + target);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${target}: ${width}`);
  }
  await done(page);
}

export async function dark_mode_and_forced_colours_are_readable(stage) {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await visit(stage, { colorScheme: "light" });
  const dark = await visit(stage, { colorScheme: "dark" });
  const lightness = async (page) => (await ground(page)).match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  assert.ok((await lightness(light)) > 600 && (await lightness(dark)) < 150);
  const forced = await visit(stage, { forcedColors: "active" });
  await forced.goto(`${stage.gateway.console}/operations`);
  // A state is a word, and has a border where colours say nothing.
  assert.equal(await forced.evaluate(() => getComputedStyle(document.querySelector(".badge")).borderTopStyle), "solid");
  for (const page of [light, dark, forced]) await done(page);
}

export async function axe_finds_nothing_serious_in_either_theme(stage) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await visit(stage, { colorScheme, bypassCSP: true });
    for (const target of ["/sign-in", ...Object.values(await screens(stage))]) {
      await page.goto(stage.gateway.console + target);
      await page.evaluate(stage.axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => ["serious", "critical", "moderate"].includes(impact));
      assert.deepEqual(serious.map(({ id, nodes }) => `${colorScheme} ${target}: ${id} ${nodes.map((node) => `${node.target} ${node.any?.[0]?.message ?? ""}`).slice(0, 3)}`), []);
    }
    await done(page);
  }
}

export async function back_forward_and_a_shared_url_give_the_same_list(stage) {
  const ids = (page) => page.locator("a.row").evaluateAll((rows) => rows.map((row) => row.getAttribute("href")));
  const page = await visit(stage);
  await page.goto(`${stage.gateway.console}/operations?limit=3`);
  const first = await ids(page);
  await page.click("text=Next page");
  await page.waitForURL("**cursor=**");
  const [second, url] = [await ids(page), page.url()];
  assert.equal(second.length, 3);
  assert.equal(first.filter((id) => second.includes(id)).length, 0);
  await page.goBack();
  assert.deepEqual(await ids(page), first);
  await page.goForward();
  assert.deepEqual(await ids(page), second);
  const other = await visit(stage, { as: "oncall" });
  await other.goto(url);
  assert.deepEqual(await ids(other), second);
  assert.ok(!url.includes("token"));
  const [bad] = await Promise.all([other.goto(`${stage.gateway.console}/operations?state=lost`)]);
  assert.equal(bad.status(), 400);
  assert.match(await other.textContent("[role=alert]"), /Must be one of/);
  await done(page);
  await done(other);
}

export async function while_the_store_is_unavailable_stale_data_is_marked_and_actions_are_off(stage) {
  const wire = await new Wire(stage.postgres).start();
  const settings = config({ service: stage.service.port, store: wire.url }).replace('store_timeout = "5s"', 'store_timeout = "1s"');
  const gateway = await new Gateway(stage.semel, stage.directory).start("outage", settings);
  stage.open.push(gateway);
  await gateway.pay("lost-outage-1-4c1e", { does: "lose" });
  const page = await visit(stage, { at: gateway.console });
  const { operation_id: id } = await gateway.operation("lost-outage-1-4c1e");
  const target = `${gateway.console}/operations/${id}`;
  await page.goto(target);
  await page.waitForSelector("text=Settle…");
  wire.cut();
  await page.goto(target);
  await page.waitForSelector(".banner >> text=The store is unavailable");
  assert.equal(await page.locator("main form, main a[data-key=s]").count(), 0);
  assert.ok((await page.textContent("main")).includes(id));
  await page.goto(`${target}/settle`);
  assert.match(await page.textContent("main"), /unavailable|did not answer/i);
  wire.mend();
  for (let tries = 0; ; tries += 1) {
    await page.goto(target);
    if (await page.locator("text=Settle…").count()) break;
    assert.ok(tries < 100, "the store answers again");
    await page.waitForTimeout(100);
  }
  await done(page);
  wire.stop();
}

export async function ten_thousand_operations_are_paged_by_keyset(stage) {
  const store = `sqlite:${path.join(stage.directory, "many.db")}`;
  const gateway = await new Gateway(stage.semel, stage.directory).start("many", config({ service: stage.service.port, store }));
  stage.open.push(gateway);
  await gateway.payMany(10_000);
  const page = await visit(stage, { at: gateway.console });
  await page.goto(`${gateway.console}/operations`);
  const seen = new Set();
  for (let turn = 0; turn < 5; turn += 1) {
    const ids = await page.locator("a.row").evaluateAll((rows) => rows.map((row) => row.getAttribute("href")));
    assert.equal(ids.length, 50);
    for (const id of ids) seen.add(id);
    // What comes meanwhile moves no page.
    await gateway.pay(`meanwhile-${turn}-0c9d`, { amount: "1.00" });
    await page.click("text=Next page");
    await page.waitForLoadState();
  }
  assert.equal(seen.size, 250);
  // The cursor says where the page begins: no page is counted through.
  assert.match(page.url(), /cursor=/);
  const deep = await gateway.api("/v1/operations?limit=1000");
  let cursor = deep.json.next_cursor;
  for (let turn = 0; turn < 8; turn += 1) cursor = (await gateway.api(`/v1/operations?limit=1000&cursor=${cursor}`)).json.next_cursor;
  assert.equal((await page.goto(`${gateway.console}/operations?cursor=${cursor}`)).status(), 200);
  assert.equal(await page.locator("a.row").count(), 50);
  await done(page);
}

export async function alerts_link_to_an_operation(stage) {
  const { operation_id: id } = await stage.gateway.operation("lost-2-0a4f6c1e");
  const page = await visit(stage, { at: `${stage.gateway.console}/operations/${id}` });
  // Signing in leads to where the link led.
  assert.equal(new URL(page.url()).pathname, `/console/operations/${id}`);
  assert.equal(await page.getAttribute("text=Bank", "href"), `https://bank.example/transfers?reference=${id}&account=acct_eu_001`);
  assert.equal(await page.getAttribute("text=Runbook", "href"), "https://wiki.example/payments#doubt");
  await done(page);
}
