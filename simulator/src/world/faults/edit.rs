//! Edits of the templates by the operator: which servers read them, and when.

use std::sync::Arc;

use doorward_engine::templates::Templates;

use crate::recording::MarkKind;
use crate::world::World;
use crate::world::message::ServerId;

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
        let servers = self.places[0].servers.iter();
        let servers: Vec<ServerId> = servers.map(|server| server.id).collect();
        for id in servers {
            let templates = templates.clone();
            self.handle_news(id, move |world| world.offer_templates(id, templates));
        }
    }
}
