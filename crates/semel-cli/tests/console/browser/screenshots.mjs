// Takes the pictures of the documentation. Arguments: where the packages are, the binary, a directory, where the pictures go.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { open, seed, close } from "./world.mjs";
import { FLAGS, signIn } from "./pages.mjs";

const [packages, semel, directory, pictures] = process.argv.slice(2);
const { chromium } = createRequire(path.join(packages, "package.json"))("playwright-core");
fs.mkdirSync(pictures, { recursive: true });

const world = await open({ semel, directory });
let browser;
try {
  await seed(world);
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  const take = async (name, page) => page.screenshot({ path: path.join(pictures, `${name}.png`) });
  for (const [suffix, colorScheme] of [["", "light"], ["-dark", "dark"]]) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1120, height: 760 }, timezoneId: "Europe/Berlin", locale: "en-GB" });
    const page = await context.newPage();
    await signIn(page, world.gateway.console, "oncall");
    await take(`overview${suffix}`, page);
    if (suffix) continue;
    const { operation_id: id } = await world.gateway.operation("lost-1-0a4f6c1e");
    await page.goto(`${world.gateway.console}/operations?state=unknown`);
    await take("operations", page);
    await page.goto(`${world.gateway.console}/operations/${id}`);
    await take("operation", page);
    await page.goto(`${world.gateway.console}/operations/${id}/settle`);
    await page.fill("#found", "Bank dashboard: transfer 17 over 25.00, booked at 03:02");
    await page.check("input[value=completed]");
    await page.fill("#status", "201");
    await page.fill("#content_type", "application/json");
    await page.fill("#resource", "payment/pay_17");
    await page.fill("#body", `{"id":"pay_17","amount":"25.00"}`);
    await page.fill("#reason", "The bank has booked it once");
    await page.fill("#ticket", "INC-4711");
    await page.screenshot({ path: path.join(pictures, "settle.png"), fullPage: true });
    await page.click("text=Look it over");
    await page.waitForSelector("text=What the next retry will get");
    await take("review", page);
  }
} finally {
  await browser?.close();
  await close(world);
}
