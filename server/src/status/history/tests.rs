//! Histories for charts.

use super::*;

fn id(number: usize) -> ResourceId {
    ResourceId::new(&format!("r{number}")).unwrap()
}

#[test]
fn a_chart_has_ten_minutes_by_the_second_and_a_day_by_the_216_seconds() {
    let history = History::default();
    history.choose(vec![(1.0, id(0))], 0);
    for at in 0..100_000 {
        history.record(&id(0), at, [1.0, 2.0, 3.0, at as f32, f32::NAN]);
    }
    let chart = history.chart(&id(0));
    let [minutes, day] = &chart.series[..] else {
        panic!("{chart:?}");
    };
    assert_eq!((minutes.samples.len(), day.samples.len()), (600, 400));
    assert_eq!(minutes.samples[599].4, 99_999.0);
    assert_eq!(minutes.samples[0].0, 99_400_000);
    let lasts = day.samples[399].0 - day.samples[0].0;
    assert_eq!(lasts, 399 * 216_000, "a day");
}

#[test]
fn the_busiest_resources_have_a_history_and_keep_it() {
    let history = History::default();
    let all = |busiest: usize| {
        let wants = |number| if number == busiest { 9.0 } else { 1.0 };
        (0..RESOURCES_MAX + 1)
            .map(|number| (wants(number), id(number)))
            .collect()
    };
    history.choose(all(RESOURCES_MAX), 0);
    history.record(&id(RESOURCES_MAX), 1, [1.0; 5]);
    history.choose(all(RESOURCES_MAX), 2);
    assert_eq!(history.samples.lock().len(), RESOURCES_MAX);
    assert_eq!(history.chart(&id(RESOURCES_MAX)).series[0].samples.len(), 1);
}

#[test]
fn a_resource_that_is_gone_keeps_its_history_for_a_day() {
    let history = History::default();
    history.choose(vec![(1.0, id(0))], 0);
    history.record(&id(0), 1, [1.0; 5]);
    for (at, left) in [(2, 1), (86_400, 1), (86_401, 0)] {
        history.choose(Vec::new(), at);
        assert_eq!(history.samples.lock().len(), left, "at {at}");
    }
}

#[test]
fn old_changes_make_room() {
    let history = History::default();
    for number in 0..=MARKS_MAX {
        history.note(number.to_string());
    }
    let marks = history.chart(&id(0)).marks;
    assert_eq!((marks.len(), &*marks[0].text), (MARKS_MAX, "1"));
}

#[test]
fn what_is_kept_is_there_again_and_nothing_of_the_future() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let now = u32::try_from(clock::wall().as_secs()).unwrap();
    let history = History::default();
    history.open(file.clone());
    history.choose(vec![(1.0, id(0))], now);
    history.record(&id(0), now - 300, [1.0, 2.0, 3.0, 4.0, f32::NAN]);
    history.record(&id(0), now + 300, [5.0; 5]);
    history.note("a change".to_owned());
    history.keep();
    let next = History::default();
    next.open(file.clone());
    let chart = next.chart(&id(0));
    let lengths = chart.series.iter().map(|it| it.samples.len());
    assert_eq!(lengths.collect::<Vec<_>>(), [1, 1]);
    let first = chart.series[0].samples[0];
    assert_eq!((first.0, first.3), (1_000 * u64::from(now - 300), 3.0));
    assert!(first.5.is_nan());
    assert_eq!(chart.marks[0].text, "a change");
    // A damaged file is no reason not to start.
    std::fs::write(&file, b"\xff\xff").unwrap();
    let next = History::default();
    next.open(file);
    assert!(next.chart(&id(0)).series.is_empty());
}

#[test]
fn a_clock_that_is_set_back_takes_later_samples_away() {
    let history = History::default();
    history.choose(vec![(1.0, id(0))], 0);
    for at in [100, 101, 102, 50, 51] {
        history.record(&id(0), at, [at as f32; FIGURES]);
    }
    let chart = history.chart(&id(0));
    let times = chart.series[0].samples.iter().map(|it| it.0 / 1_000);
    assert_eq!(times.collect::<Vec<_>>(), [50, 51]);
}
