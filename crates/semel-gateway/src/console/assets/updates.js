// News. A page that somebody is about to click on does not move: news is announced above it, and shown when asked for.

const EVERY = 10_000;

function announce(text) {
  const news = document.querySelector("#news");
  if (news.dataset.text === text) return;
  news.dataset.text = text;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Show";
  news.replaceChildren(document.createTextNode(`${text} `), link);
}

async function ask(url) {
  const response = await fetch(url, { headers: { accept: "application/json" } });
  if (response.status === 401) return announce("Your session has ended."), null;
  return response.ok ? response.json() : null;
}

async function look() {
  const list = document.querySelector("[data-newer]");
  const one = document.querySelector("[data-version]");
  if (list) {
    const told = await ask(list.dataset.newer);
    if (told?.newer > 0) announce(`${told.newer}${told.more ? "+" : ""} newer.`);
  }
  if (one) {
    const told = await ask(one.dataset.ask);
    if (told && String(told.version) !== one.dataset.version) announce(`It moved on: ${told.state}.`);
  }
  if (document.querySelector("[data-live]")) {
    const response = await fetch(location.href);
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    // Numbers change where they stand; nothing moves.
    for (const element of document.querySelectorAll("[data-live]")) {
      const fresh = page.querySelector(`[data-live="${element.dataset.live}"]`);
      if (fresh && fresh.textContent !== element.textContent) element.textContent = fresh.textContent;
    }
  }
}

export function watchForNews() {
  if (!document.querySelector("[data-newer], [data-version], [data-live]")) return;
  const next = () => {
    // A tab that nobody looks at asks nothing. A store that does not answer is asked again.
    const looking = document.hidden ? Promise.resolve() : look().catch(() => {});
    looking.finally(() => setTimeout(next, EVERY));
  };
  setTimeout(next, EVERY);
  // For those who want to know now.
  document.addEventListener("semel:look", () => look().catch(() => {}));
}
