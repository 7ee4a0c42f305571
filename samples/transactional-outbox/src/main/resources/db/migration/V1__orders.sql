create sequence order_change;

create table orders (
  id bigint primary key generated always as identity,
  customer text not null,
  item text not null,
  status text not null default 'placed',
  change bigint not null default nextval('order_change')
);
create index orders_of_customer on orders (customer, change);
comment on column orders.change is 'Grows with every change of any order.';

-- What the broker has been told, one row for each change of an order.
create table delivered (
  order_id bigint not null references orders,
  change bigint not null,
  delivered_at timestamptz not null default now(),
  primary key (order_id, change)
);
