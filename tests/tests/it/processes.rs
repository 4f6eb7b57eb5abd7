//! Real servers, clients, command lines and etcd on loopback.

mod agent;
mod chaos;
mod comeback;
mod command_line;
mod credentials;
mod crowd_behind_one_address;
mod demo;
mod election;
mod election_cut_off;
mod election_etcd;
mod election_flags;
mod election_restored;
mod etcd;
mod etcd_wiped;
mod outside;
mod quotas;
mod ready;
mod restart;
mod secured;
mod shorter_leases;
mod templates_etcd;
mod tree_of_processes;
mod two_processes;
mod unread_log;
mod what_clients_live_through;
mod wrong_starts;
