"""JSON Schemas of what each verb answers, and of the files that users write and read."""

from __future__ import annotations

from typing import Any

__all__ = ["DEFINITIONS", "ENVELOPE", "SCHEMAS"]

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}
NULLABLE: Schema = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": TEXT}
REFERENCE: Schema = {"type": ["string", "object"]}
NUMBER: Schema = {"type": "number"}
UNKNOWN: Schema = {"type": ["number", "null"]}
OBJECTS: Schema = {"type": "array", "items": OBJECT}


def _object(required: str, /, **properties: Schema) -> Schema:
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": True}


def _records(**properties: Schema) -> Schema:
    return {"type": "array", "items": _object(" ".join(properties), **properties)}


def _either(*schemas: Schema) -> Schema:
    return {"type": "object", "anyOf": list(schemas)}


COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
SUMMARY = _object("ok case_count status_counts", ok=FLAG, case_count=COUNT, status_counts=COUNTS)
PROGRESS = _object("case_count terminal pending", case_count=COUNT, terminal=COUNT, pending=COUNT)
ACTION = _object("command rationale", command=TEXT, rationale=TEXT)
CASES = _records(id=TEXT, status=TEXT, ok=FLAG)
TOTALS = _object("pass fail error unscored", **dict.fromkeys(("pass", "fail", "error", "unscored"), COUNT))
LEAK = _object(
    "sandbox isolation promised spy places hits searched left_out complete",
    sandbox=TEXT,
    isolation=TEXT,
    promised=FLAG,
    spy={"enum": ["python3", "sh"]},
    places=TEXTS,
    hits=_records(place=TEXT, path=TEXT, how=TEXT),
    searched=_object("files bytes seconds", files=COUNT, bytes=COUNT, seconds={"type": "number", "minimum": 0}),
    left_out=_records(path=TEXT, why=TEXT),
    complete=FLAG,
)

ENVELOPE = _object(
    "ok tool_version data meta warnings commands errors",
    ok=FLAG,
    tool_version=TEXT,
    data={},
    meta=_object(
        "request_id ts_iso data_hash contract_version elapsed_ms",
        request_id=TEXT,
        ts_iso=TEXT,
        data_hash=NULLABLE,
        contract_version={"type": "integer"},
        elapsed_ms=COUNT,
    ),
    warnings=_records(code=TEXT, message=TEXT),
    commands=_records(command=TEXT, rationale=TEXT),
    errors={"type": "array", "items": _object("code message hint exit_code", code=TEXT, message=TEXT, hint=TEXT)},
)

COMPARISON = _object(
    "a b metric pairs lost difference interval p alpha answer wins losses ties mde looks",
    a=_object("name mean", name=TEXT, mean=UNKNOWN),
    b=_object("name mean", name=TEXT, mean=UNKNOWN),
    metric=TEXT,
    pairs=COUNT,
    lost=TEXTS,
    changed=TEXTS,
    difference=UNKNOWN,
    interval={"type": ["array", "null"], "items": {"type": "number"}},
    p=UNKNOWN,
    alpha=UNKNOWN,
    answer={"enum": ["better", "worse", "no-evidence"]},
    wins=COUNT,
    losses=COUNT,
    ties=COUNT,
    mde=UNKNOWN,
    looks={"type": ["integer", "null"]},
    exploratory=FLAG,
    advice=NULLABLE,
    cost_usd=OBJECT,
    duration_s=OBJECT,
)
GATES = _records(gate=TEXT, arm=TEXT, verdict={"enum": ["pass", "fail", "undecided"]}, value=UNKNOWN, why=TEXT)

RUN = _object(
    "report_hash",
    run_id=TEXT,
    run_dir=TEXT,
    run=SUMMARY,
    report_hash=NULLABLE,
    content_hash=TEXT,
    profile=_object("", table=TEXT, picture=TEXT, spans=TEXT),
    existing=FLAG,
    experiment=TEXT,
    runs=OBJECTS,
    totals=OBJECT,
    comparisons=OBJECTS,
    gates=GATES,
    arms=OBJECTS,
)

ENDS: Schema = {"type": ["array", "null"], "items": NUMBER, "minItems": 2, "maxItems": 2}
SUM = _object("total known of", total=UNKNOWN, known=COUNT, of=COUNT)
ARMS = _records(
    name=TEXT,
    planned=COUNT,
    missing=COUNT,
    attempted=COUNT,
    scored=COUNT,
    passed=COUNT,
    harness_errors=COUNT,
    agent_faults=COUNT,
    unscored=COUNT,
    pass_rate=UNKNOWN,
    pass_rate_macro=UNKNOWN,
    pass_rate_attempted=UNKNOWN,
    interval=ENDS,
    score=UNKNOWN,
    primary={"type": ["object", "null"]},
    cost=SUM,
    tokens=SUM,
    duration_s=_object("median known of", median=UNKNOWN, known=COUNT, of=COUNT),
    flaky=TEXTS,
    never=TEXTS,
    stable=TEXTS,
)
DAMAGED = _records(run_id=TEXT, reason=TEXT)
EXPERIMENT = _object(
    "experiment suite finished arms runs totals total_count report_hash",
    experiment=TEXT,
    suite=TEXT,
    finished=FLAG,
    primary=NULLABLE,
    alpha=NUMBER,
    looks=COUNT,
    arms=ARMS,
    runs=_records(run_id=TEXT, arm=TEXT, repeat=COUNT, state=TEXT, case_count=COUNT, terminal=COUNT),
    damaged=DAMAGED,
    totals=OBJECT,
    comparisons=OBJECTS,
    cases=_records(id=TEXT, arms=OBJECT),
    failures=_records(trial=TEXT, run_id=TEXT, arm=TEXT, repeat=COUNT, id=TEXT, status=TEXT, scores=OBJECTS),
    groups=_records(key=TEXT, count=COUNT, cases=TEXTS, arms=COUNTS, examples=OBJECTS),
    group_by=TEXT,
    held_out=COUNT,
    files=TEXTS,
    total_count=COUNT,
    report_hash={"type": "null"},
)

SCHEMAS: dict[str, Schema] = {
    "capabilities": _object(
        "tool_name contract_version features verbs global_flags exit_codes error_codes env_vars integrations schemas_uri "
        "robot_docs_uri",
        tool_name=TEXT,
        contract_version={"type": "integer"},
        features=TEXTS,
        verbs=OBJECT,
        error_codes=OBJECT,
    ),
    "schema": _object("envelope_schema schemas definitions", envelope_schema=OBJECT, schemas=OBJECT, definitions=OBJECT),
    "init": _object("created suite files", created=TEXT, suite=TEXT, files=TEXTS),
    "validate": _object("suite case_count valid", suite=TEXT, case_count=COUNT, valid=FLAG),
    "plan": _object("suite run execution plan cases", suite=OBJECT, run=OBJECT, execution=OBJECT, plan=OBJECT, cases=OBJECTS),
    "run": RUN,
    "replay": _object(
        "replayed_from cases_replayed",
        replayed_from=TEXT,
        cases_replayed=COUNT,
        run_id=TEXT,
        run_dir=TEXT,
        run=SUMMARY,
        report_hash=TEXT,
    ),
    "status": _either(
        _object(
            "run_id run_dir state run progress cases recommended_action",
            run_id=TEXT,
            run_dir=TEXT,
            state={"enum": ["completed", "running", "stale", "orphaned"]},
            run=SUMMARY,
            progress=PROGRESS,
            cases=CASES,
            recommended_action=ACTION,
        ),
        _object(
            "experiment experiment_dir state run progress runs recommended_action",
            experiment=TEXT,
            experiment_dir=TEXT,
            state={"enum": ["completed", "running", "stale", "orphaned"]},
            run=SUMMARY,
            progress=PROGRESS,
            runs=_records(
                run_id=TEXT, arm=TEXT, repeat=COUNT, state=TEXT, case_count=COUNT, terminal=COUNT, status_counts=COUNTS
            ),
            recommended_action=ACTION,
        ),
    ),
    "report": _either(
        _object(
            "run failures cases run_id report_hash content_hash sealed usage",
            usage={"type": "object"},
            run=SUMMARY,
            failures=OBJECTS,
            cases=CASES,
            remarks=OBJECTS,
            run_id=TEXT,
            report_hash=TEXT,
            content_hash=TEXT,
            sealed=FLAG,
        ),
        EXPERIMENT,
    ),
    "rescore": _object("report_hash rescored_from", **RUN["properties"], rescored_from=TEXT),
    "compare": _object(
        "comparisons",
        comparisons={"type": "array", "items": COMPARISON},
        damaged=DAMAGED,
        **COMPARISON["properties"],
    ),
    "band": _object("experiment metric arms", experiment=TEXT, metric=TEXT, arms=OBJECTS, damaged=DAMAGED),
    "judge": _object(
        "",
        judges={"type": "array"},
        scorer=TEXT,
        items=COUNT,
        judged=COUNT,
        errors=OBJECT,
        accuracy=UNKNOWN,
        kappa=UNKNOWN,
        kappa_interval={"type": ["array", "null"], "items": {"type": "number"}},
        confusion=OBJECT,
        leniency=UNKNOWN,
        repeatability=UNKNOWN,
        position_bias=UNKNOWN,
        first_chosen=UNKNOWN,
    ),
    "worker": _object("key ended worker", key=TEXT, ended=TEXT, worker=TEXT, reason=NULLABLE),
    "explain": _object(
        "run_id case status hops plugins digests", run_id=TEXT, case=TEXT, status=TEXT, hops=OBJECTS, plugins=OBJECTS
    ),
    "verify": _object(
        "ok sealed events artifacts first_damage",
        run_id=TEXT,
        experiment=TEXT,
        ok=FLAG,
        sealed=FLAG,
        events=COUNT,
        artifacts=COUNT,
        first_damage={"type": ["object", "null"]},
        runs=OBJECTS,
    ),
    "audit": _object(
        "suite case_count noop gold problems",
        suite=TEXT,
        case_count=COUNT,
        noop=TOTALS,
        gold=TOTALS,
        problems=OBJECTS,
        leak=LEAK,
    ),
    "jobs": _object("", runs=OBJECTS, count=COUNT, run_id=TEXT, state=TEXT, confirmed=FLAG, candidates=OBJECT, removed=OBJECT),
    "suite": _object("suite suite_dir created files", suite=TEXT, suite_dir=TEXT, created=FLAG, files=TEXTS),
    "case": _object("suite", suite=TEXT, id=TEXT, created=FLAG, case=OBJECT, added=OBJECTS, counts=COUNTS),
    "scorer": _object("suite scorer id created", suite=TEXT, scorer=TEXT, id=NULLABLE, created=FLAG),
    "import": _object(
        "format out suite case_count unsupported",
        format=TEXT,
        out=TEXT,
        suite=TEXT,
        case_count=COUNT,
        unsupported=OBJECTS,
        summary=OBJECT,
        experiment=TEXT,
        runs=TEXTS,
    ),
    "export": _object("format out run_id suite case_count", format=TEXT, out=TEXT, run_id=TEXT, suite=TEXT, case_count=COUNT),
    "plugins": _object("plugins", plugins=OBJECTS),
    "new": _object("kind name directory files", kind=TEXT, name=TEXT, directory=TEXT, files=TEXTS),
    "doctor": _object("components settings", components=OBJECT, settings=OBJECT),
}

SCORE = _object(
    "scorer ok score label findings required",
    scorer=TEXT,
    ok=FLAG,
    score={"type": "number", "minimum": 0, "maximum": 1},
    label=TEXT,
    findings=OBJECTS,
    required=FLAG,
    advisory=FLAG,
    id=TEXT,
    metrics={"type": "object", "additionalProperties": {"type": "number"}},
    judge=OBJECT,
    error=FLAG,
    error_code=TEXT,
)

DEFINITIONS: dict[str, Schema] = {
    "suite.json": _object(
        "name runner",
        schema_version={"const": 2},
        name=TEXT,
        cases=TEXT,
        runner=OBJECT,
        scorers=OBJECTS,
        acknowledged_unsandboxed_runner=FLAG,
        sandbox=REFERENCE,
        sandboxes=OBJECT,
        services=OBJECT,
        judges=OBJECT,
        requires=TEXTS,
        retry=_object("", infrastructure=COUNT, backoff_seconds={"type": "number", "minimum": 0}),
        primary=TEXT,
        analysis=_object("", metric=TEXT, alpha={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        arms={"type": "object", "additionalProperties": _object("", runner=REFERENCE, sandbox=REFERENCE, judges=OBJECT)},
        repeats={"type": "integer", "minimum": 1},
        tags=TEXTS,
        meta=OBJECT,
    ),
    "cases.jsonl": _object(
        "task workspace",
        id={"type": "string", "pattern": "^[A-Za-z0-9._-]{1,100}$"},
        task=TEXT,
        workspace=TEXT,
        diff=TEXT,
        expect=OBJECT,
        hidden=TEXT,
        gold={"type": ["string", "object"]},
        sandbox=OBJECT,
        services={"type": "object", "additionalProperties": TEXT},
        timeout_seconds={"type": "number", "exclusiveMinimum": 0},
        tags=TEXTS,
        split=TEXT,
        human={},
        meta=OBJECT,
    ),
    "score": SCORE,
    "score.json": _object(
        "case_id status ok scores",
        case_id=TEXT,
        status={"enum": ["pass", "fail", "error", "unscored"]},
        ok=FLAG,
        fault={"enum": ["agent", "harness"]},
        scores={"type": "array", "items": SCORE},
    ),
    "ledger.jsonl": _object(
        "v seq ts run type actor data prev digest",
        v=COUNT,
        seq=COUNT,
        ts=TEXT,
        run=TEXT,
        type=TEXT,
        actor=OBJECT,
        data=OBJECT,
        prev=TEXT,
        digest=TEXT,
    ),
}
