//! Edits of the templates by the operator: which servers read them, and when.

use std::sync::Arc;

use doorward_engine::templates::Templates;

use crate::recording::MarkKind;
use crate::world::World;

impl World<'_> {
    pub(super) fn edit(&mut self, templates: &Templates) {
        let now = self.now;
        let before = std::mem::replace(&mut self.templates, templates.clone());
        self.templates_before.push(before);
        let mut said = Vec::new();
        for watched in self.watched.iter_mut() {
            let template = templates.find(&watched.resource).map(Arc::clone);
            let capacity = template.as_ref().map_or(0.0, |it| it.capacity.get());
            said.push(format!("{} has {capacity}", watched.resource));
            watched.note_template(template.as_deref(), now);
        }
        self.settle_later();
        let text = format!("the templates are edited: {}", said.join(", "));
        self.mark(None, MarkKind::Edit, text);
        self.hand_out(templates);
    }

    /// Gives the templates to the servers of the root, except frozen ones.
    fn hand_out(&mut self, templates: &Templates) {
        let now = self.now;
        let root = &mut self.places[0];
        let mut awake = Vec::new();
        for server in &mut root.servers {
            if server.is_frozen(now) {
                server.backlog.templates = Some(templates.clone());
            } else {
                awake.push(server.id);
            }
        }
        for id in awake {
            self.offer_templates(id, templates.clone());
        }
    }
}
