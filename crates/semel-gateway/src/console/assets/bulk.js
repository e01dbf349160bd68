// Bulk settling: one step after the other, as long as the page is open. It begins when somebody says so.

async function steps(panel, form) {
  const show = (name, value) => (panel.querySelector(`[data-${name}]`).textContent = value);
  for (;;) {
    const body = new URLSearchParams(new FormData(form));
    let told;
    try {
      const response = await fetch(panel.dataset.bulk, { method: "POST", body, headers: { accept: "application/json" } });
      told = response.ok ? await response.json() : null;
    } catch {
      told = null;
    }
    // What happened is on the page, wherever it was interrupted.
    if (!told || !told.running) return location.reload();
    for (const name of ["tried", "settled", "failed"]) show(name, told[name]);
    panel.querySelector("progress").value = told.tried;
  }
}

export function runBulk() {
  const panel = document.querySelector("[data-bulk]");
  const form = panel?.querySelector("[data-step]");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    form.querySelector("button").disabled = true;
    steps(panel, form);
  });
}
