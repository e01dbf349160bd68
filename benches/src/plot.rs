//! The results as drawings: ratios as dots with their spread, and curves over growing stores. Plain SVG, made of text.

use crate::results::Entry;
use crate::table::number;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A drawing: its file's name, and what goes into the file.
pub type Drawing = (String, String);

const WIDTH: f64 = 960.0;
const COLOURS: [&str; 4] = ["#1f6feb", "#d1570a", "#2da44e", "#8250df"];

/// The drawings of a store that grows, by their titles.
pub mod growth {
    /// New operations in a second.
    pub const NEW: &str = "Growth: new operations";
    /// Within which time 99 of 100 of them were answered.
    pub const NEW_P99: &str = "Growth: p99 of new operations";
    /// Replays in a second.
    pub const REPLAYS: &str = "Growth: replays";
    /// Within which time 99 of 100 of them were answered.
    pub const REPLAYS_P99: &str = "Growth: p99 of replays";
    /// Resident memory.
    pub const MEMORY: &str = "Growth: memory of the gateway";
    /// From the beginning of the process.
    pub const START: &str = "Growth: start to the first answer";
    /// Rows, indexes and whatever else there is.
    pub const DISK: &str = "Growth: bytes on disk for a key";
    /// By a reaper, while as many arrive.
    pub const FORGOTTEN: &str = "Growth: forgotten at a steady rate";

    /// All of them.
    pub const ALL: [&str; 8] = [NEW, NEW_P99, REPLAYS, REPLAYS_P99, MEMORY, START, DISK, FORGOTTEN];
}

/// All drawings of these results: every ratio, those that there is a bar for, and the curves. The pages show them, so they are there even
/// if nothing was measured yet, and say so.
#[must_use]
pub fn all(entries: &[Entry]) -> Vec<Drawing> {
    let rates: Vec<&Entry> =
        entries.iter().filter(|entry| entry.point.is_none() && entry.unit.ends_with("/s")).collect();
    let held: Vec<&Entry> = rates.iter().copied().filter(|entry| entry.bar != "none").collect();
    let mut drawings =
        vec![("ratios.svg".to_owned(), ratios(&rates)), ("bars.svg".to_owned(), ratios(&held))];
    let mut plots: BTreeMap<&str, Vec<&Entry>> = growth::ALL.map(|title| (title, Vec::new())).into();
    for entry in entries {
        if let Some(point) = &entry.point {
            plots.entry(&point.plot).or_default().push(entry);
        }
    }
    drawings.extend(plots.into_iter().map(|(title, points)| (file_name(title), curves(title, &points))));
    drawings
}

/// `Growth: p99 of replays` is in `growth-p99-of-replays.svg`.
fn file_name(title: &str) -> String {
    let words: Vec<_> =
        title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{}.svg", words.join("-").to_lowercase())
}

/// From numbers to places on the paper, by logarithm: twice as much is as far everywhere.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self { low: 1.0, high: 2.0, from, to };
        }
        Self { low: low / 1.15, high: high * 1.15, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        self.from + (self.to - self.from) * (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Round numbers to draw lines at: 1, 2 and 5 and their tenfolds, as far as they are in sight.
    fn lines(&self) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let tens = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        tens.filter(|line| (self.low..=self.high).contains(line)).collect()
    }
}

/// A drawing in the making.
struct Paper {
    text: String,
    height: f64,
}

impl Paper {
    fn new(height: f64, title: &str) -> Self {
        let mut paper = Self { text: String::new(), height };
        paper.words(16.0, 24.0, "start", "#1f2328", title);
        paper
    }

    fn words(&mut self, x: f64, y: f64, anchor: &str, colour: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.text,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}">{words}</text>"#
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.text,
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}" stroke-width="{width}"/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    fn dot(&mut self, (x, y): (f64, f64), colour: &str) {
        let _ = writeln!(self.text, r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}"/>"#);
    }

    fn say_if_empty(&mut self, entries: &[&Entry]) {
        if entries.is_empty() {
            self.words(WIDTH / 2.0, self.height / 2.0, "middle", DARK, "not measured yet");
        }
    }

    fn done(self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n{}</svg>\n",
            self.text,
            height = self.height,
        )
    }
}

const GREY: &str = "#d0d7de";
const DARK: &str = "#57606a";

/// A row for each: the median, the spread, and the bar as an upright stroke.
fn ratios(entries: &[&Entry]) -> String {
    const ROW: f64 = 20.0;
    const TOP: f64 = 64.0;
    let height = TOP + ROW * entries.len() as f64 + 20.0;
    let mut paper = Paper::new(
        height,
        "Throughput, as a ratio of what it is measured against: median, spread, and the bar (|)",
    );
    let bar = |entry: &Entry| entry.bar.split(' ').nth(1).and_then(|bar| bar.parse::<f64>().ok());
    let values = entries.iter().flat_map(|entry| entry.spread.into_iter().chain(bar(entry)));
    let scale = Scale::of(values.chain([1.0]), 560.0, WIDTH - 30.0);
    for line in scale.lines() {
        let x = scale.place(line);
        paper.line(
            (x, TOP - 14.0),
            (x, height - 16.0),
            GREY,
            if (line - 1.0).abs() < 1e-9 { 2.0 } else { 1.0 },
        );
        paper.words(x, TOP - 20.0, "middle", DARK, &number(line));
    }
    paper.say_if_empty(entries);
    for (row, entry) in entries.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let colour = if entry.is_missed() { COLOURS[1] } else { COLOURS[0] };
        paper.words(548.0, y + 4.0, "end", "#1f2328", &entry.name);
        paper.line((scale.place(entry.spread[0]), y), (scale.place(entry.spread[1]), y), colour, 2.0);
        if let Some(bar) = bar(entry) {
            paper.line((scale.place(bar), y - 7.0), (scale.place(bar), y + 7.0), "#1f2328", 2.0);
        }
        paper.dot((scale.place(entry.ratio), y), colour);
    }
    paper.done()
}

/// A curve for each name, over how much is stored.
fn curves(title: &str, entries: &[&Entry]) -> String {
    const HEIGHT: f64 = 360.0;
    let unit = entries.first().map_or("", |entry| &entry.unit);
    let mut paper =
        Paper::new(HEIGHT, &if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") });
    paper.say_if_empty(entries);
    let xs = entries.iter().filter_map(|entry| entry.point.as_ref()).map(|point| point.x);
    let across = Scale::of(xs, 80.0, WIDTH - 40.0);
    let up = Scale::of(entries.iter().map(|entry| entry.ours), HEIGHT - 40.0, 70.0);
    for line in across.lines() {
        paper.line((across.place(line), 60.0), (across.place(line), HEIGHT - 40.0), GREY, 1.0);
        paper.words(across.place(line), HEIGHT - 20.0, "middle", DARK, &number(line));
    }
    for line in up.lines() {
        paper.line((80.0, up.place(line)), (WIDTH - 40.0, up.place(line)), GREY, 1.0);
        paper.words(72.0, up.place(line) + 4.0, "end", DARK, &number(line));
    }
    let mut curves: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for entry in entries {
        if let Some(point) = &entry.point {
            curves.entry(&point.curve).or_default().push((across.place(point.x), up.place(entry.ours)));
        }
    }
    for ((number, (name, points)), colour) in curves.into_iter().enumerate().zip(COLOURS.into_iter().cycle())
    {
        for pair in points.windows(2) {
            paper.line(pair[0], pair[1], colour, 2.0);
        }
        for point in &points {
            paper.dot(*point, colour);
        }
        paper.words(80.0 + 200.0 * number as f64, 48.0, "start", colour, name);
    }
    paper.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;
    use crate::results::tests::measured;

    #[test]
    fn ratios_and_curves_are_drawn_apart() {
        let mut entries =
            vec![measured("gateway: new & old", 6.0), measured("at 1e5", 8.0), measured("at 1e6", 7.0)];
        for (entry, x) in entries.iter_mut().skip(1).zip([1e5, 1e6]) {
            entry.point = Some(Point { plot: growth::REPLAYS.into(), curve: "SQLite".into(), x });
        }
        let drawings = all(&entries);
        let names: Vec<_> = drawings.iter().map(|(name, _)| &**name).collect();
        let replays = names.iter().position(|name| *name == "growth-replays.svg").unwrap();
        assert_eq!((&names[..2], names.len()), (&["ratios.svg", "bars.svg"][..], 2 + growth::ALL.len()));
        assert!(drawings[0].1.contains("new &amp; old") && !drawings[0].1.contains("at 1e5"));
        assert_eq!(drawings[replays].1.matches("<circle").count(), 2);
        let unmeasured = drawings.iter().filter(|(_, text)| text.contains("not measured yet")).count();
        assert_eq!(unmeasured, growth::ALL.len() - 1);
        for (_, text) in &drawings {
            assert!(
                text.starts_with("<svg ") && text.ends_with("</svg>\n") && !text.contains("NaN"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_scale_puts_the_same_factor_the_same_way_apart() {
        let scale = Scale::of([1.0, 100.0].into_iter(), 0.0, 100.0);
        let [one, ten, hundred] = [1.0, 10.0, 100.0].map(|value| scale.place(value));
        assert!((ten - one - (hundred - ten)).abs() < 1e-6);
        assert_eq!(scale.lines(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert!(Scale::of([0.0].into_iter(), 0.0, 1.0).place(0.0).is_finite());
    }
}
