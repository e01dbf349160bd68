// Moments: relative, kept current, with the exact one in the reader's zone as a title.

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
// The page was made at the server's now; the reader's clock may be another.
const loaded = performance.now();

function span(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

function relative(ago) {
  if (ago === 0) return "now";
  return ago > 0 ? `${span(ago)} ago` : `in ${span(-ago)}`;
}

// How long ago it was when the page was made, by what the server wrote.
function secondsAgo(text) {
  const [, ahead, number, unit] = /^(in )?(\d+) (s|min|h|days)( ago)?$/.exec(text) ?? [];
  if (number === undefined) return 0;
  const seconds = Number(number) * { s: 1, min: 60, h: 3600, days: 86400 }[unit];
  return ahead ? -seconds : seconds;
}

export function watchTimes() {
  const times = [...document.querySelectorAll("time[datetime]")].map((element) => {
    const at = new Date(element.dateTime);
    element.title = `${exact.format(at)} (${at.toISOString()})`;
    return { element, ago: secondsAgo(element.textContent) };
  });
  setInterval(() => {
    const passed = Math.floor((performance.now() - loaded) / 1000);
    for (const { element, ago } of times) {
      // Coarse ones are known to the minute or the hour alone.
      if (Math.abs(ago) < 7200) element.textContent = relative(ago + passed);
    }
  }, 1000);
}
