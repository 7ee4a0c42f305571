create table orders (
  id bigint primary key generated always as identity,
  customer text not null,
  item text not null,
  paid boolean not null default false,
  invoice_number integer,
  unique (customer, invoice_number)
);
comment on column orders.invoice_number is 'Counts the invoices of a customer, without gaps.';
