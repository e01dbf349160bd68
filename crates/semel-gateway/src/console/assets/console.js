// What the console adds where scripts run. Every page is complete without.
import { watchTimes } from "./times.js";
import { listenToKeys } from "./keys.js";
import { watchForNews } from "./updates.js";
import { guardForms } from "./forms.js";
import { runBulk } from "./bulk.js";

watchTimes();
listenToKeys();
watchForNews();
guardForms();
runBulk();
