// What scenarios do with pages.
import { TOKENS } from "./world.mjs";

export const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/// A page of its own, signed in, whose requests and violations are noted.
export async function visit(stage, { as = "admin", at = stage.gateway.console, sign = true, ...options } = {}) {
  const context = await stage.browser.newContext({ viewport: { width: 1180, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("request", (request) => stage.asked.push(request.url()));
  page.on("console", (message) => {
    if (/Content.Security.Policy|Refused to/i.test(message.text())) stage.violations.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => stage.violations.push(`${page.url()}: ${error}`));
  if (sign) await signIn(page, at, as);
  return page;
}

export async function signIn(page, at, as) {
  await page.goto(at);
  await page.fill("#token", TOKENS[as] ?? as);
  await page.click("button.primary");
  await page.waitForSelector(".who");
}

export const done = (page) => page.context().close();

/// The addresses of all screens, below the console's.
export async function screens(stage) {
  const { operation_id: lost } = await stage.gateway.operation("lost-0-0a4f6c1e");
  const { operation_id: paid } = await stage.gateway.operation("paid-0-4c1e8f5e");
  return {
    overview: "",
    operations: "/operations",
    unknown: "/operations?state=unknown",
    nothing: "/operations?tenant=nobody",
    operation: `/operations/${lost}`,
    completed: `/operations/${paid}`,
    outbox: "/outbox",
    contract: "/contract",
    settings: "/settings",
    keys: "/keys",
  };
}
