//! Looks that Doorward's pages and command lines share: [numbers], colours and text styles of pages. The feature
//! `terminal` adds tables and tones on a terminal. Programs also share the check of the system at their start ([room]),
//! and the exit code of output that cannot be written ([exits]).

pub mod exits;
pub mod numbers;
pub mod room;
#[cfg(feature = "terminal")]
pub mod terminal;

/// Colours as variables, for light pages, and for dark pages where the reader prefers them. Readers who do not
/// distinguish red from green still distinguish the lines. Thin lines have enough contrast to the surface.
pub const PALETTE: &str = include_str!("../palette.css");

/// Style of all pages: head and foot, text, tables.
pub const BASE: &str = include_str!("../base.css");

/// Script of uPlot, which draws charts.
pub const UPLOT: &str = include_str!("../uplot/uPlot.iife.min.js");

/// Style of uPlot.
pub const UPLOT_STYLE: &str = include_str!("../uplot/uPlot.min.css");

/// License of uPlot.
pub const UPLOT_LICENSE: &str = include_str!("../uplot/LICENSE");

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns the colours of light pages, or of dark ones.
    fn colours(is_dark: bool) -> BTreeMap<&'static str, &'static str> {
        let (light, dark) = PALETTE.split_once("@media").unwrap();
        let text = if is_dark { dark } else { light };
        let lines = text.split([';', '{', '}', '\n']).map(str::trim);
        lines
            .filter_map(|line| line.strip_prefix("--")?.split_once(": "))
            .collect()
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
        for is_dark in [false, true] {
            let colours = colours(is_dark);
            for name in [
                "blue", "orange", "teal", "purple", "red", "ink", "quiet", "good", "bad",
            ] {
                for (ground, least) in [("surface", 4.5), ("wrong", 3.0)] {
                    let (a, b) = (luminance(colours[name]), luminance(colours[ground]));
                    let found = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                    assert!(found >= least, "{name} on {ground}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn light_and_dark_have_the_same_colours() {
        let names = |is_dark| colours(is_dark).into_keys().collect::<Vec<_>>();
        assert!(names(false).len() > 15);
        assert_eq!(names(false), names(true));
    }
}
