// Runs the scenarios and prints one line of JSON for each. Arguments: where the packages are, the binary, a directory, an empty database.
import { createRequire } from "node:module";
import path from "node:path";
import { open, seed, close } from "./world.mjs";
import { FLAGS } from "./pages.mjs";
import * as reading from "./reading.mjs";
import * as security from "./security.mjs";
import * as settling from "./settling.mjs";

const [packages, semel, directory, postgres, only] = process.argv.slice(2);
const require = createRequire(path.join(packages, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

const world = await open({ semel, directory });
let browser;
try {
  await seed(world);
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  const stage = { ...world, postgres, browser, axe, asked: [], violations: [] };
  const scenarios = Object.entries({ ...security, ...reading, ...settling });
  // What the others asked of the network is looked at when they have ended.
  scenarios.sort(([a], [b]) => (a === "nothing_is_asked_of_any_other_host") - (b === "nothing_is_asked_of_any_other_host"));
  for (const [scenario, run] of scenarios) {
    if (only && !scenario.includes(only)) continue;
    let problem = null;
    const begun = performance.now();
    try {
      await Promise.race([
        run(stage),
        new Promise((_, reject) => setTimeout(() => reject(new Error("it takes more than a minute")), 60_000).unref()),
      ]);
    } catch (error) {
      problem = String(error.stack ?? error);
    }
    console.log(JSON.stringify({ scenario, problem, took: Math.round(performance.now() - begun) }));
  }
} finally {
  await browser?.close();
  await close(world);
}
// Connections that are kept open must not keep this program.
process.exit();
