-- A little of everything that SQLite and its shell do; run under edges.c by tools/eval-jumptables.
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
  insert into t select i, 'row' || (i * 7919 % 101), i / 3.0 from n;
create index tb on t(b);
select count(*), sum(c), avg(a), group_concat(distinct b) from t where b like 'row1%' group by b having count(*) > 1
  order by 2 desc limit 5;
create table u(x, y, foreign key(x) references t(a));
insert into u select a, b from t where a % 3 = 0;
select t.a, u.y from t left join u on t.a = u.x where t.a between 10 and 20 order by t.b collate nocase;
create trigger tr after update on t begin insert into u values(new.a, 'upd'); end;
update t set c = c + 1 where a < 50;
delete from t where a > 400;
vacuum;
select json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), json_group_array(a) from t where a < 5;
select strftime('%Y', '2020-01-01'), printf('%08.3f|%x|%s', 3.14, 255, 'x'), substr('hello', 2, 3), replace('aXb', 'X', '-'),
  round(2.567, 1), typeof(1.0), coalesce(null, 3), nullif(1, 1), abs(-4), instr('abc', 'c'), unicode('a'), quote('it''s'),
  upper('abc'), trim('  a '), zeroblob(3), max(1, 2), hex('ab'), length('abc'), char(65), date('2020-01-31', '+1 month');
create view v as select a, row_number() over (partition by b order by a) r, rank() over (order by c),
  lag(c) over (order by a), sum(c) over (order by a rows between 2 preceding and current row) from t;
select * from v limit 5;
explain query plan select * from v join u on u.x = v.a;
explain select * from t where a in (select x from u) and exists (select 1 from u);
begin;
savepoint s;
insert into u values(1, 2);
rollback to s;
commit;
insert into t(a, b) values(1, 'again') on conflict(a) do update set b = excluded.b;
pragma integrity_check;
analyze;
reindex;
alter table u add column z default 5;
alter table u rename to w;
select 1 union select 2 intersect select 2 except select 3;
select case when 1 then 2 else 3 end, cast('12' as integer), 1 is not 2, 'a' glob 'a*', x'4142', -(-3), 5 % 3, 7 & 3, 1 << 4,
  ~5, not 1, 'a' || 'b', 1 between 0 and 2, 3 in (1, 2, 3);
.mode csv
select * from t limit 3;
.mode json
select * from t limit 2;
.mode box
select * from t limit 2;
.schema
.dump w
