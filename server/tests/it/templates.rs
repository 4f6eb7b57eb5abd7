//! Templates that change while clients hold leases.

use doorward_server::templates::{apply, refuse};

use crate::running::{
    asked, asked_with, capacity, get, only, page, start, status_of, templates_with,
};

#[tokio::test]
async fn new_templates_hold_for_the_next_request() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 500.0)]).await;
    apply(server.state(), templates_with(300.0)).await;
    let asks = vec![asked_with("fair/x", 500.0, 100.0)];
    let response = get(&mut client, "a", asks).await;
    assert_eq!(only(&response).gets.capacity, 300.0);
}

#[tokio::test]
async fn refused_templates_change_nothing_and_everyone_is_told() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let problem = "t.yaml:3:5: template 1: capacity: is <missing>";
    refuse(server.state(), problem.to_owned());
    let response = get(&mut client, "a", vec![asked("fair/x", 500.0)]).await;
    assert_eq!(only(&response).gets.capacity, 100.0);
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.templates_count, 2);
    assert!(
        status
            .templates_problem
            .is_some_and(|p| p.contains("t.yaml:3"))
    );
    let metrics = crate::running::metrics(&server).await;
    assert!(metrics.contains("doorward_templates_refused 1.0\n"));
    assert!(metrics.contains("doorward_template_loads_total{outcome=\"failed\"} 1\n"));
    assert_eq!(page(&server, "/readyz").await.0, 200, "it serves as before");

    apply(server.state(), templates_with(100.0)).await;
    assert_eq!(status_of(server.state(), None, 0).templates_problem, None);
}
