// Forms that change something: sent once, and never again by themselves.

function lost(form) {
  const target = form.dataset.lost ?? "/console";
  const text = document.createElement("p");
  text.className = "problem";
  text.setAttribute("role", "alert");
  const link = document.createElement("a");
  link.href = target;
  link.textContent = "Look at the operation";
  text.append("The answer was lost: it may be settled, or not. Nothing is sent again. ", link);
  form.replaceWith(text);
  link.focus();
}

async function send(form) {
  let response;
  try {
    const body = new URLSearchParams(new FormData(form));
    response = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } });
  } catch {
    lost(form);
    return;
  }
  if (response.redirected) {
    location.assign(response.url);
    return;
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main"));
  document.title = page.title;
  document.querySelector("main").focus();
  guardForms();
}

export function guardForms() {
  for (const form of document.querySelectorAll("form[method=post]")) {
    if (form.dataset.guarded) continue;
    form.dataset.guarded = "yes";
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
      if (form.dataset.lost) {
        event.preventDefault();
        for (const button of form.querySelectorAll("button")) button.disabled = true;
        send(form);
      }
    });
  }
  // Back to a page that was left: it may be sent again.
  addEventListener("pageshow", (event) => {
    if (event.persisted) for (const form of document.forms) delete form.dataset.sent;
  });
}
