//! How charts look, in light and dark. A page shares its colours with them through variables; a file
//! of its own has them filled in, because not every viewer knows variables.

/// The style sheet of charts.
const CSS: &str = include_str!("../../../templates/chart.css");

/// Name, in light, in dark. Chosen so that people who do not tell red from green tell the lines
/// apart, and with enough contrast to the surface for thin lines.
const COLOURS: [(&str, &str, &str); 21] = [
    ("ground", "#f6f7f9", "#0f141b"),
    ("surface", "#ffffff", "#171e28"),
    ("line", "#e3e6eb", "#27303d"),
    ("ink", "#16202e", "#e6ebf2"),
    ("quiet", "#5d697c", "#8d9aad"),
    ("accent", "#2f6fde", "#6ea3ff"),
    ("track", "#e9edf3", "#232c39"),
    ("good", "#14804a", "#63d196"),
    ("good-ground", "#e2f4ea", "#14301f"),
    ("bad", "#b42318", "#ff8b80"),
    ("bad-ground", "#fdecea", "#3a1815"),
    ("warn", "#9a5b00", "#f0b75a"),
    ("warn-ground", "#fdf1dc", "#35260d"),
    ("blue", "#2f6fde", "#6ea3ff"),
    ("orange", "#b45309", "#f5a14b"),
    ("teal", "#0f766e", "#4fd1c0"),
    ("purple", "#a21caf", "#e48af2"),
    ("red", "#c0261a", "#ff7d70"),
    ("wrong", "#f9d9b4", "#4a3416"),
    ("tip", "#16202e", "#e6ebf2"),
    ("tip-ink", "#ffffff", "#0f141b"),
];

/// The variables, in light, and in dark where that is preferred.
pub(in crate::report) fn colours() -> String {
    let set = |colour: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let all = COLOURS
            .iter()
            .map(|entry| format!("--{}:{};", entry.0, colour(entry)));
        all.collect::<String>()
    };
    let (light, dark) = (set(|entry| entry.1), set(|entry| entry.2));
    format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media (prefers-color-scheme:dark){{@media screen{{:root{{{dark}}}}}}}\n"
    )
}

/// For a page that has the variables.
pub(in crate::report) fn css() -> &'static str {
    CSS
}

/// For a file of its own.
pub(super) fn css_alone() -> String {
    let light = filled(|entry| entry.1);
    let dark = filled(|entry| entry.2);
    format!("{light}@media (prefers-color-scheme:dark){{{dark}}}")
}

fn filled(colour: fn(&(&'static str, &'static str, &'static str)) -> &'static str) -> String {
    let mut css = CSS.to_owned();
    for entry in &COLOURS {
        css = css.replace(&format!("var(--{})", entry.0), colour(entry));
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_needs_no_variables() {
        let css = css_alone();
        assert!(!css.contains("var("), "{css}");
        assert!(css.contains("#2f6fde") && css.contains("#6ea3ff"));
    }

    #[test]
    fn lines_stand_out_from_the_surface() {
        let luminance = |hex: &str| -> f64 {
            let part = |from: usize| {
                let value = u8::from_str_radix(&hex[from..from + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                match value <= 0.040_45 {
                    true => value / 12.92,
                    false => ((value + 0.055) / 1.055).powf(2.4),
                }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let get = |name: &str| COLOURS.iter().find(|entry| entry.0 == name).unwrap();
        for name in [
            "blue", "orange", "teal", "purple", "red", "ink", "quiet", "good", "bad",
        ] {
            for ground in ["surface", "wrong"] {
                let (line, ground) = (get(name), get(ground));
                let least = if ground.0 == "surface" { 4.5 } else { 3.0 };
                for (line, ground) in [(line.1, ground.1), (line.2, ground.2)] {
                    let found = contrast(line, ground);
                    assert!(found >= least, "{name} on {ground}: {found:.2}");
                }
            }
        }
    }
}
