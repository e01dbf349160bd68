// Keys that go somewhere. None of them submits anything.

const rows = () => [...document.querySelectorAll("table.list a.row")];
let went = 0;

function move(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement);
  const next = at === -1 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus();
}

const single = {
  "/": () => document.querySelector("#key-filter")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  s: () => document.querySelector("a[data-key=s]")?.click(),
  // It asks somebody else: the person presses the button.
  p: () => document.querySelector("button[data-key=p]")?.focus(),
  "?": () => location.assign("/console/keys"),
};

const after = { o: "/console", l: "/console/operations" };

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "g") {
      went = event.timeStamp;
      return;
    }
    if (went && event.timeStamp - went < 1500 && after[event.key]) {
      went = 0;
      location.assign(after[event.key]);
      return;
    }
    went = 0;
    if (single[event.key]) {
      event.preventDefault();
      single[event.key]();
    }
  });
}
