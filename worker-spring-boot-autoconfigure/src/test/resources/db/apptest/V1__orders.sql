create table orders (id int primary key);

create function order_added() returns trigger language plpgsql as $$
begin
  perform "${worker}".add_job('order', json_build_object('id', new.id));
  return new;
end
$$;

create trigger order_added after insert on orders for each row execute function order_added();

insert into orders values (1);
