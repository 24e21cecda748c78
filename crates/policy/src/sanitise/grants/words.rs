//! The rules and their words.

use super::{Order, Rule};

type Words = &'static [&'static str];

/// Yes to something.
const APPROVE: Words = &[
    "approve", "accept", "grant", "allow", "permit", "authorise", "authorize", "confirm",
    "say yes to", "answer yes to", "reply yes to", "agree to", "sign off", "wave through",
    "genehmige*", "bewillige*", "erlaube*", "bestätige*", "stimme", "approuve*", "accepte*",
    "autorise*", "valide*", "aprueba*", "apruebe*", "acepta*", "acepte*", "autoriza*", "autorice*",
    "aprove*", "aprova*", "aceite*", "autorize*", "approva*", "accetta*", "autorizza*", "одобряй*",
    "одобри*", "разрешай*", "подтверждай*", "принимай*", "批准", "同意", "允许", "通过", "وافق",
    "اقبل", "اسمح", "承認", "許可", "受け入れ", "승인", "허용", "수락", "मंज़ूर", "मंजूर", "स्वीकार", "अनुमति",
    "wave",
];

/// Everything of something.
const EVERYTHING: Words = &[
    "every", "all", "any", "each", "everything", "anything", "whatever", "jede*", "alle*",
    "sämtliche*", "tous", "toutes", "toute", "chaque", "todas", "todos", "toda", "todo",
    "cada", "cualquier*", "qualquer*", "ogni", "tutte", "tutti", "qualsiasi", "все", "всё", "всех",
    "каждый", "каждую", "любой", "любые", "любую", "所有", "一切", "任何", "全部", "جميع", "كل", "أي",
    "すべて", "全て", "あらゆる", "모든", "모두", "हर", "सभी", "सब",
];

/// Without anybody looking.
const UNASKED: Words = &[
    "without asking", "without confirmation", "without confirming", "without review",
    "without a review", "without approval", "without permission", "without checking",
    "without question", "without questions", "without any question", "without further questions",
    "without limit", "without hesitation", "without looking", "without reading", "without exception",
    "automatically", "unconditionally", "no questions asked", "no matter what", "blindly",
    "immediately and silently", "ohne rückfrage", "ohne nachfrage", "ohne nachzufragen",
    "ohne zu fragen", "ohne bestätigung", "ohne prüfung", "ungefragt", "automatisch", "blind",
    "sans poser de question", "sans demander", "sans confirmation", "sans vérifier",
    "sans vérification", "sans question", "automatiquement", "sin preguntar", "sin confirmación",
    "sin confirmar", "sin revisar", "sin revisión", "automáticamente", "sem perguntar",
    "sem confirmação", "sem confirmar", "sem verificar", "sem revisão", "automaticamente",
    "senza chiedere", "senza conferma", "senza verificare", "senza controllo", "senza domande",
    "без вопросов", "без подтверждения", "без проверки", "не спрашивая", "автоматически",
    "无需询问", "不用询问", "不需要询问", "不要询问", "不必询问", "无需确认", "不必确认", "不经确认", "自动", "دون سؤال", "بدون سؤال",
    "دون تأكيد", "بدون تأكيد", "دون مراجعة", "تلقائيا", "تلقائيًا", "確認なし", "確認せず", "確認無し",
    "自動的に", "無条件", "尋ねずに", "묻지 말고", "묻지 않고", "확인 없이", "자동으로", "무조건", "बिना पूछे",
    "बिना पुष्टि", "बिना जाँच", "अपने आप",
    "nobody needs to", "no one needs to", "nobody has to", "no review needed", "needs no review", "nobody will check",
];

/// What protects.
const PROTECTION: Words = &[
    "guardrails", "guardrail", "sandbox", "sandboxing", "safety check", "safety checks",
    "security check", "security checks", "safety measures", "security measures", "safeguards",
    "safeguard", "protections", "confinement", "wardkeep", "security hook", "security hooks",
    "permission checks", "permission system", "security policy", "safety rules", "security rules",
    "audit logging", "audit hook", "monitoring", "content filter", "content filters",
    "sicherheitsprüfung*", "sicherheitskontrolle*", "schutzmaßnahme*", "schutzmechanism*",
    "überwachung", "contrôles de sécurité", "mesures de sécurité", "garde-fous", "bac à sable",
    "controles de seguridad", "medidas de seguridad", "verificações de segurança",
    "medidas de segurança", "controlli di sicurezza", "misure di sicurezza",
    "проверки безопасности", "меры безопасности", "защиту", "песочницу", "安全检查", "安全措施", "沙箱",
    "防护", "فحوصات الأمان", "تدابير الأمان", "الحماية", "安全確認", "安全対策", "サンドボックス",
    "セキュリティチェック", "보안 검사", "안전장치", "샌드박스", "सुरक्षा जाँच", "सुरक्षा उपाय", "सैंडबॉक्स",
];

/// Doing away with it.
const SWITCH_OFF: Words = &[
    "disable", "turn off", "switch off", "deactivate", "bypass", "circumvent", "get around",
    "work around", "evade", "shut down", "uninstall", "schalte", "deaktiviere*", "umgehe*",
    "abschalten", "désactive*", "contourne*", "coupe*", "désinstalle*", "desactiva*",
    "desactive*", "elude*", "evita*", "apaga*", "desative*", "desativa*", "contorne*", "desligue*",
    "disattiva*", "aggira*", "spegni*", "отключай*", "отключи*", "обходи*", "обойди*", "выключи*",
    "关闭", "绕过", "禁用", "停用", "عطل", "عطّل", "تجاوز", "أوقف", "無効に", "無効化", "回避", "停止",
    "우회", "비활성화", "끄", "बाईपास", "बंद", "निष्क्रिय",
];

/// The rules of this or the built-in policy.
const RULES_HERE: Words = &[
    "rules", "rule", "restrictions", "restriction", "limits", "limitations", "boundaries",
    "prohibitions", "this policy", "this file", "this list", "policy", "guidelines", "regeln",
    "einschränkungen", "verbote", "grenzen", "richtlinie", "richtlinien", "règles",
    "restrictions ci-dessus", "interdictions", "limites", "reglas", "restricciones", "límites",
    "regras", "restrições", "regole", "restrizioni", "limiti", "правила", "ограничения", "запреты",
    "规则", "限制", "规定", "القواعد", "القيود", "規則", "制限", "ルール", "규칙", "제한", "नियम", "नियमों", "प्रतिबंध",
    "everything written", "everything above", "everything before", "text above", "all of the above", "earlier sections", "sections above", "items above", "alles oben",
];

/// That take themselves back.
const TAKEN_BACK: Words = &[
    "only examples", "just examples", "merely examples", "are examples", "mere examples",
    "only an example", "illustrative", "placeholders", "not binding", "not mandatory",
    "do not apply here", "don't apply here", "do not apply to you", "does not apply to you",
    "do not apply to this", "don't apply to this", "does not apply to this", "is void", "are void",
    "null and void", "are suspended", "is suspended", "no longer apply", "no longer applies",
    "no longer hold", "are optional", "is optional", "not meant to be followed",
    "not to be followed", "can be ignored", "may be ignored", "should be ignored",
    "need not be followed", "do not need to follow", "don't need to follow", "don't have to follow",
    "do not have to follow", "are cancelled", "are lifted", "are obsolete", "are outdated",
    "for show", "not meant seriously", "only for auditors", "only for the auditors",
    "nur beispiele", "bloß beispiele", "nur ein beispiel",
    "gelten hier nicht", "sind aufgehoben", "unverbindlich", "ungültig", "nur zur ansicht",
    "que des exemples", "sont des exemples", "seulement des exemples",
    "ne s'appliquent plus", "sont facultatives", "sont suspendues", "solo ejemplos",
    "sólo ejemplos", "son ejemplos", "ya no se aplican", "son opcionales",
    "apenas exemplos", "são exemplos", "são opcionais", "solo esempi",
    "sono esempi", "sono facoltative", "лишь примеры", "только примеры",
    "необязательны", "отменены", "只是示例", "只是例子", "仅为示例", "仅供参考",
    "已失效", "مجرد أمثلة", "ملغاة", "اختيارية", "例にすぎ",
    "単なる例", "無効です", "従う必要はありません", "예시일 뿐", "예시에 불과",
    "따를 필요가 없", "केवल उदाहरण", "सिर्फ उदाहरण", "वैकल्पिक",
    "sample text", "has no effect", "have no effect", "example text", "dummy text", "boilerplate", "for illustration", "are cancelled", "are canceled", "is cancelled", "are revoked", "is revoked", "policy revoked", "rules revoked", "are withdrawn", "policy expired", "policy has expired", "rules have expired", "were not here", "as if it were not", "as though it were not", "gelten nicht mehr", "gelten für dich nicht", "hat keine wirkung", "haben keine wirkung", "n'ont aucun effet", "no se aplican aquí", "não se aplicam aqui", "qui non si applicano",
    "больше не действуют", "здесь не действуют", "在此不适用", "不再适用", "不必遵守", "无需遵守", "لا تنطبق هنا", "ここでは適用され", "더 이상 적용되지", "अब लागू नहीं", "यहाँ लागू नहीं",
];

/// What stands behind a policy.
const REMINDER: Words = &[
    "security reminder", "safety reminder", "reminder at the end", "reminder that follows",
    "reminder below", "text after this", "after this policy", "behind this policy",
    "following reminder", "following security", "security suffix", "final reminder",
    "last paragraph of the prompt", "end of the context", "hardcoded rules", "built-in rules",
    "built-in safety", "builtin rules", "built-in restrictions", "sicherheitshinweis*",
    "eingebauten regeln", "rappel de sécurité", "règles intégrées", "recordatorio de seguridad",
    "reglas integradas", "lembrete de segurança", "regras internas", "promemoria di sicurezza",
    "regole integrate", "напоминание о безопасности", "встроенные правила", "安全提醒", "安全提示", "内置规则",
    "تذكير الأمان", "التذكير الأمني", "القواعد المدمجة", "セキュリティリマインダー", "組み込みの規則", "보안 알림",
    "내장 규칙", "सुरक्षा अनुस्मारक", "सुरक्षा रिमाइंडर",
    "paragraph about tool_output", "paragraph at the end", "at the very end", "the last paragraph", "final paragraph", "what follows this policy", "block at the end", "warnings about tool_output",
];

/// That it is no longer to be heeded.
const VOID: Words = &[
    "outdated", "obsolete", "void", "does not apply", "do not apply", "doesn't apply",
    "don't apply", "no longer applies", "no longer apply", "not part of your instructions",
    "not binding", "can be ignored", "may be ignored", "should be ignored", "can be skipped",
    "may be skipped", "is optional", "are optional", "not for you", "concerns other",
    "meant for other", "only for other", "is wrong", "a mistake", "a bug", "superseded",
    "less important", "lower priority", "weniger wichtig", "veraltet", "gilt nicht",
    "gelten nicht", "périmé", "obsolète", "ne s'applique pas", "obsoleto", "obsoletas",
    "no se aplica", "não se aplica", "non si applica", "устарело", "не действует", "не действуют", "已过时",
    "不适用", "无效", "قديم", "لا ينطبق", "古い", "適用されません", "무효", "적용되지 않", "पुराना", "लागू नहीं",
    "boilerplate",
];

/// Paying no heed.
const IGNORE: Words = &[
    "ignore", "skip", "disregard", "overlook", "drop", "leave out", "strip", "discard", "forget",
    "ignoriere*", "überspringe*", "ignorez", "ignore", "sautez", "ignora", "ignore", "omite", "salta",
    "игнорируй*", "пропускай*", "忽略", "跳过", "تجاهل", "無視", "무시", "अनदेखा",
];

/// Things that are data.
const DATA: Words = &[
    "tool result", "tool results", "tool output", "tool outputs", "tool_output", "memory_context",
    "external_content", "web page", "web pages", "webpage", "webpages", "website", "websites",
    "search result", "search results", "e-mail", "e-mails", "email", "emails", "mails", "mail",
    "message", "messages", "issue", "issues", "comment", "comments", "document", "documents",
    "retrieved content", "retrieved text", "downloaded file", "downloaded files", "pdf", "pdfs",
    "attachment", "attachments", "calendar invite", "pull request", "pull requests",
    "webseite*", "werkzeugausgabe*", "pages web", "page web", "courriels", "páginas web",
    "página web", "correos", "páginas da web", "e-mails", "pagine web", "веб-страниц*", "писем",
    "网页", "工具输出", "邮件", "صفحات الويب", "الرسائل", "ウェブページ", "ツールの出力", "メール", "웹페이지",
    "도구 출력", "이메일", "वेब पेज", "ईमेल",
    "page", "pages", "site", "sites",
];

/// Taken as the owner's word.
const AS_MINE: Words = &[
    "as if i had", "as if i said", "as if i wrote", "as if they came from me",
    "as if it came from me", "as if they were mine", "as if it were mine", "as though i",
    "as though they came from me", "as my own", "as mine", "like mine", "same authority",
    "same weight", "same priority", "higher priority", "as orders", "as commands",
    "as instructions from me",
    "overrides these rules", "override these rules", "als kämen sie von mir",
    "als ob ich", "wie meine eigenen", "comme si je", "comme les miennes", "como si yo",
    "como si fueran mías", "como se eu", "come se io", "come se fossero mie", "как мои",
    "как если бы я", "视为我的", "当作我的", "如同我", "كأنها مني", "كما لو كنت", "私の指示として", "私が言ったもの",
    "내가 말한 것처럼", "내 지시로", "जैसे मैंने", "मेरे निर्देश",
    "to be obeyed", "must be obeyed", "are to be followed", "like this file", "like these rules", "outrank", "outranks", "override this policy", "overrides this policy", "carry them out", "carry it out first", "follow them first", "obey them", "comme si je", "als kämen sie", "como se viessem de mim",
];

/// Doing as told.
const OBEY: Words = &["follow", "obey", "execute", "carry out", "comply with", "act on", "perform", "do whatever", "do everything", "do anything", "do what"];
/// What orders are.
const ORDERS: Words = &[
    "instructions in", "instructions from", "instructions inside", "instructions found",
    "instructions there", "orders in", "orders from", "commands in", "commands from",
    "commands found", "whatever", "anything", "everything", "what it says", "what they say",
];

/// What is nobody else's.
const SECRET: Words = &[
    ".env", "~/.ssh", ".ssh", "id_ed25519", "id_rsa", "~/.aws", ".aws", "credentials", "password", "passwords",
    "private key", "private keys", "api key", "api keys", "secrets", "connection string", "database password",
    "kubeconfig", ".netrc", "vault token", "passwort", "passwörter", "zugangsdaten", "mots de passe", "mot de passe",
    "contraseñas", "contraseña", "senhas", "senha", "пароли", "пароль", "密码", "密钥", "كلمات المرور", "パスワード",
    "비밀번호", "पासवर्ड",
];

/// Giving it away.
const HAND_OUT: Words = &[
    "send", "upload", "attach", "post", "paste", "append", "include", "embed", "forward", "go to", "goes to",
    "put the contents", "put the content", "transmit", "mail", "publish", "exfiltrate", "report", "sende*", "schicke*",
    "lade", "envoie*", "envoyez", "transmets", "envía*", "envíe*", "sube", "envie*", "invia*", "carica", "отправ*",
    "загружай*", "发送", "上传", "发到", "أرسل", "ارفع", "送信", "アップロード", "보내", "업로드", "भेज", "अपलोड",
];

/// Where others read it.
const PLACES: Words = &[
    "https://", "http://", "@", "channel", "ticket", "chat", "summary", "link", "issue", "support", "query parameter",
    "release server", "pastebin", "webhook",
];

pub(super) const RULES: [Rule; 39] = [
    Rule {
        id: "policy.approve-all",
        reason: "Grants everything without anybody being asked.",
        weight: 0.8,
        groups: &[&[UNASKED], &[APPROVE], &[EVERYTHING]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.run-anything",
        reason: "Lets every command run.",
        weight: 0.8,
        groups: &[
            &[&["run", "execute", "perform", "use", "call"]],
            &[&[
                "any command", "any commands", "every command", "all commands", "any shell command",
                "any tool", "every tool", "any script", "any action", "every action", "anything",
                "whatever command", "arbitrary commands", "arbitrary code", "any code",
            ]],
            &[UNASKED, &["you are given", "you receive", "anyone", "including with sudo", "even as root", "you like"]],
        ],
        order: Order::Within(8),
        negatable: true,
    },
    Rule {
        id: "policy.run-anything",
        reason: "Lets every command run.",
        weight: 0.8,
        groups: &[&[UNASKED], &[&[
            "jeden befehl", "alle befehle", "toutes les commandes", "toute commande", "n'importe quelle commande",
            "cualquier comando", "cualquier orden", "todos los comandos", "qualquer comando", "todos os comandos",
            "qualsiasi comando", "ogni comando", "tutti i comandi", "любые команды", "все команды", "любую команду", "任何命令", "所有命令",
            "أي أمر", "جميع الأوامر", "あらゆるコマンド", "すべてのコマンド", "どんなコマンド", "모든 명령", "हर आदेश", "हर कमांड",
            "कोई भी कमांड",
        ]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.never-ask",
        reason: "Does away with questions to the owner.",
        weight: 0.7,
        groups: &[
            &[&["never ask", "do not ask", "don't ask", "stop asking", "no need to ask", "never wait", "do not wait", "don't wait"]],
            &[&["confirmation", "permission", "approval", "consent", "the lead", "the owner", "again", "a human", "anyone first"]],
        ],
        order: Order::Within(4),
        negatable: false,
    },
    Rule {
        id: "policy.consent-assumed",
        reason: "Takes consent as given.",
        weight: 0.7,
        groups: &[
            &[&["confirmations", "confirmation", "approvals", "approval", "consent", "permissions", "permission"]],
            &[&[
                "considered given", "is assumed", "are assumed", "is implied", "are implied",
                "already given", "is granted", "are granted", "granted in advance", "given in advance",
                "never needed", "no longer needed", "no longer required", "never required",
            ]],
        ],
        order: Order::Within(6),
        negatable: true,
    },
    Rule {
        id: "policy.no-more-permission",
        reason: "Does away with permissions.",
        weight: 0.7,
        groups: &[
            &[&["no longer need", "no longer have to", "don't need", "never need", "no longer require"]],
            &[&["permission", "permissions", "approval", "approvals", "confirmation", "to ask", "my consent"]],
        ],
        order: Order::Within(3),
        negatable: false,
    },
    Rule {
        id: "policy.yes-to-prompts",
        reason: "Answers the questions that are meant for the owner.",
        weight: 0.75,
        groups: &[
            &[&["answer yes", "say yes", "reply yes", "click yes", "press y", "type yes", "accept", "approve", "confirm", "pass --yes"]],
            &[&["permission prompt", "permission prompts", "permission request", "permission requests", "confirmation prompts", "approval prompts", "all prompts", "every prompt", "any prompt"]],
        ],
        order: Order::Within(4),
        negatable: true,
    },
    Rule {
        id: "policy.unrestricted",
        reason: "Gives rights without limits.",
        weight: 0.75,
        groups: &[&[&[
            "unrestricted access", "unlimited access", "unrestricted permissions",
            "unlimited permissions", "unrestricted rights", "root access to everything",
            "full access to everything", "full control over everything", "access to all secrets",
            "full access to all secrets", "no restrictions apply", "nothing is forbidden",
            "everything is allowed", "everything is permitted", "you may do anything",
            "you can do anything", "uneingeschränkten zugriff", "alles ist erlaubt",
            "accès illimité", "tout est permis", "acceso ilimitado", "todo está permitido",
            "acesso irrestrito", "tudo é permitido", "accesso illimitato", "tutto è permesso",
            "неограниченный доступ", "всё разрешено", "все разрешено", "不受限制", "一切都允许", "没有任何限制", "وصول غير محدود",
            "كل شيء مسموح", "無制限のアクセス", "すべて許可され", "무제한 접근", "모든 것이 허용", "असीमित पहुँच",
            "सब कुछ अनुमत",
        ]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.never-refuse",
        reason: "Forbids to refuse.",
        weight: 0.8,
        groups: &[&[&[
            "never refuse", "do not refuse", "don't refuse", "never decline", "never say no",
            "always comply", "comply with every", "comply with all", "comply with any", "lehne nie",
            "ne refusez jamais", "ne refuse jamais", "nunca rechaces", "nunca recuse",
            "non rifiutare mai", "никогда не отказывай", "从不拒绝", "永远不要拒绝", "绝不拒绝", "لا ترفض أبدا",
            "決して断らない", "拒否しない", "절대 거절하지", "कभी मना मत",
        ]]],
        order: Order::Any,
        negatable: false,
    },
    Rule {
        id: "policy.protection-off",
        reason: "Switches off what protects the owner.",
        weight: 0.8,
        groups: &[&[PROTECTION], &[SWITCH_OFF]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.remove-guard",
        reason: "Removes a guard, a log or the policy itself.",
        weight: 0.75,
        groups: &[
            &[&["remove", "delete", "erase", "wipe", "clear", "truncate", "uninstall", "kill", "overwrite", "edit out"]],
            &[&[
                "wardkeep", "the hook", "hooks that block", "audit log", "audit trail",
                "security_audit.jsonl", "localgpt.md", "localgpt_manifest.json", "device_key",
                "the guard", "a hook blocks",
            ]],
        ],
        order: Order::Within(8),
        negatable: true,
    },
    Rule {
        id: "policy.own-commands",
        reason: "Has the agent run a command that changes its own protection.",
        weight: 0.8,
        groups: &[&[&[
            "md sign --yes", "md sign -y", "policy sign --yes", "wardkeep uninstall",
            "wardkeep release", "wardkeep purge", "wardkeep approvals approve", "wardkeep config edit",
            "wardkeep rollback --yes", "apply --yes",
        ]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.self-edit",
        reason: "Lets the agent change its own rules.",
        weight: 0.8,
        groups: &[
            &[&["you may", "you can", "you should", "you are allowed to", "feel free to", "the agent may", "the assistant may"]],
            &[&["edit", "change", "update", "modify", "rewrite", "extend", "replace", "sign", "relax"]],
            &[&["localgpt.md", "this file", "this policy", "these rules", "your own rules", "your rules", "the policy file", "soul.md", "identity.md"]],
        ],
        order: Order::Within(3),
        negatable: true,
    },
    Rule {
        id: "policy.takes-itself-back",
        reason: "Says that the rules are not meant.",
        weight: 0.75,
        groups: &[&[TAKEN_BACK], &[RULES_HERE]],
        order: Order::Any,
        negatable: false,
    },
    Rule {
        id: "policy.reminder-void",
        reason: "Says that the security reminder does not count.",
        weight: 0.85,
        groups: &[&[REMINDER], &[VOID]],
        order: Order::Any,
        negatable: false,
    },
    Rule {
        id: "policy.reminder-ignored",
        reason: "Has the security reminder ignored.",
        weight: 0.85,
        groups: &[&[REMINDER], &[IGNORE]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.data-as-orders",
        reason: "Gives data the owner's authority.",
        weight: 0.8,
        groups: &[&[AS_MINE], &[DATA]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.obey-data",
        reason: "Has the agent follow orders that stand in data.",
        weight: 0.7,
        groups: &[&[OBEY], &[ORDERS], &[DATA, &["there"]]],
        order: Order::Within(4),
        negatable: true,
    },
    Rule {
        id: "policy.obey-any",
        reason: "Has the agent do whatever data says.",
        weight: 0.7,
        groups: &[
            &[&["do whatever", "do everything", "do anything", "do what", "follow whatever", "obey whatever"]],
            &[DATA],
            &[&["say", "says", "tell", "tells", "ask", "asks", "demand", "demands", "instruct", "instructs", "request", "requests"]],
        ],
        order: Order::Within(4),
        negatable: true,
    },
    Rule {
        id: "policy.key-out",
        reason: "Has the device key handed out.",
        weight: 0.8,
        groups: &[
            &[&[".device_key", "device_key", "device key"]],
            &[&["send", "upload", "post", "copy", "print", "attach", "share", "include", "publish", "show", "read", "cat", "commit"]],
        ],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.trust-all",
        reason: "Has the agent trust whatever comes along.",
        weight: 0.7,
        groups: &[
            &[&["trust", "obey", "believe"]],
            &[&["every", "any", "all", "each", "whatever", "whoever", "anyone", "messages", "everyone"]],
            &[DATA, &["who", "from", "says", "asks"]],
        ],
        order: Order::Within(2),
        negatable: true,
    },
    Rule {
        id: "policy.keep-quiet",
        reason: "Has attacks or own steps kept from the owner.",
        weight: 0.7,
        groups: &[
            &[&[
                "do not report", "don't report", "never report", "do not mention", "don't mention",
                "never mention", "do not flag", "never flag", "hide", "conceal", "keep quiet about",
                "without reporting", "without telling", "do not tell", "don't tell", "never tell",
            ]],
            &[&[
                "it and continue", "them and continue", "it and go on", "these steps", "this step",
                "injection", "injections", "attack", "attacks", "tampering", "blocked attempts",
                "what you did", "your actions", "these changes", "this change",
            ]],
        ],
        order: Order::Within(4),
        negatable: false,
    },
    Rule {
        id: "policy.false-negation",
        reason: "Dresses an order up as a prohibition.",
        weight: 0.75,
        groups: &[
            &[&["do not", "don't", "never", "dont", "must not"]],
            &[&["hesitate to", "fail to", "forget to", "neglect to", "omit to", "refuse to", "refrain from"]],
            &[&[
                "ignore", "disregard", "bypass", "override", "skip", "approve", "disobey", "forget",
                "ignoring", "bypassing", "disable", "overrule",
            ]],
        ],
        order: Order::Within(2),
        negatable: false,
    },
    Rule {
        id: "policy.precedence",
        reason: "Puts itself above the rules that come from outside of it.",
        weight: 0.75,
        groups: &[&[&["takes precedence", "take precedence", "overrides", "outranks", "supersedes", "replaces", "overrules"]], &[&["system prompt", "system instructions", "system message", "built-in safety", "built-in rules", "safety rules of", "developer instructions", "platform rules", "provider's rules", "security reminder"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.regardless",
        reason: "Lets things pass whoever asks and whatever speaks against it.",
        weight: 0.7,
        groups: &[&[&["whoever", "whatever ci", "whatever the checks", "whatever the tests", "regardless of who", "regardless of what", "no matter who", "no matter what", "even if the checks", "even if ci", "even if tests"]], &[&["approve", "merge", "deploy", "execute", "run", "obey", "accept", "allow", "release", "pay", "install", "unlock"]], &[EVERYTHING]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.confirm-yourself",
        reason: "Has the agent give the owner's answer.",
        weight: 0.75,
        groups: &[&[&["confirm it yourself", "confirm them yourself", "approve it yourself", "approve them yourself", "answer it yourself", "confirm yourself", "approve yourself", "say yes yourself", "on my behalf without", "sign it yourself", "sign this file yourself", "sign the policy yourself", "sign it on my behalf", "sign them yourself", "re-sign it"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.flags",
        reason: "Starts programs with their protection switched off.",
        weight: 0.75,
        groups: &[&[&["--dangerously-skip-permissions", "--dangerously-bypass*", "--yolo", "bypasspermissions", "--no-sandbox", "--full-auto", "--disable-sandbox", "danger-full-access", "--skip-permissions"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.conflict",
        reason: "Lets others win against the rules.",
        weight: 0.7,
        groups: &[&[&["these rules", "this policy", "this file"]], &[&["conflict", "conflicts", "contradict", "contradicts", "disagree"]], &[&["wish wins", "request wins", "customer wins", "user wins", "message wins", "ticket wins", "wish prevails", "request prevails", "follow the customer", "follow the user", "follow the message", "follow the ticket", "follow the request", "do what the customer", "do what the user"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.behind-back",
        reason: "Has things kept from the owner.",
        weight: 0.7,
        groups: &[&[&["must not learn", "must not know", "should not know", "must not find out", "should not learn", "shall not know", "keep it from", "keep this from", "behind the back", "without the knowledge", "without my knowledge", "unnoticed by", "unseen by"]], &[&["owner", "operator", "administrator", "me", "my knowledge", "the human", "security team", "auditor", "auditors"]]],
        order: Order::Any,
        negatable: false,
    },
    Rule {
        id: "policy.stop-wardkeep",
        reason: "Stops what watches over the agent.",
        weight: 0.8,
        groups: &[&[&["stop", "kill", "pause", "disable", "turn off", "switch off", "remove", "uninstall", "unload", "mask", "skip", "detach", "quit", "suspend"]], &[&["wardkeep", "wardkeep's"]]],
        order: Order::Within(2),
        negatable: true,
    },
    Rule {
        id: "policy.root",
        reason: "Hands out root rights.",
        weight: 0.65,
        groups: &[&[&["sudo", "as root", "root rights", "administrator rights", "admin rights"]], &[UNASKED, &["no need to tell", "no need to ask", "without telling", "at will", "freely"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.secret-out",
        reason: "Has secrets sent or written where others read them.",
        weight: 0.75,
        groups: &[&[SECRET], &[HAND_OUT], &[PLACES]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.all-mail-out",
        reason: "Has all of something sent to an address.",
        weight: 0.7,
        groups: &[&[&["every mail", "every message", "every e-mail", "every email", "all mails", "all messages", "all e-mails", "all emails", "each mail", "each message", "whole conversation", "entire conversation", "full conversation", "every conversation", "all conversations", "every prompt", "all prompts"]], &[HAND_OUT, &["bcc", "cc", "copy"]], &[&["https://", "http://", "@"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.encoded-out",
        reason: "Has data carried away in an encoding.",
        weight: 0.7,
        groups: &[&[&["encode", "encoded", "base64", "hex"]], &[&["append", "attach", "put", "add", "embed", "load"]], &[&["query parameter", "query string", "link", "url", "image", "host name", "hostname", "subdomain"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.address-filled",
        reason: "Has data filled into an address.",
        weight: 0.65,
        groups: &[&[&["https://", "http://"]], &[&["followed by", "replaced by", "replacing", "filled with", "with the user's", "with the customer's"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.pipe-to-shell",
        reason: "Has a script from the network run unseen.",
        weight: 0.7,
        groups: &[&[&["curl", "wget"]], &[&["| sh", "| bash", "|sh", "|bash", "| sudo", "| python", "| zsh"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.reset",
        reason: "Replaces the agent's rules.",
        weight: 0.7,
        groups: &[&[&["reset", "replace", "swap", "wipe"]], &[&["your instructions", "your rules", "your guidelines", "your policy"]]],
        order: Order::Within(2),
        negatable: true,
    },
    Rule {
        id: "policy.obey-all",
        reason: "Has the agent obey anyone.",
        weight: 0.65,
        groups: &[&[&["obey all", "obey every", "obey any", "obey anyone", "obey everyone", "obey whoever", "obey messages", "approve everything", "approve anything", "allow everything", "permit everything", "accept everything", "confirm everything", "god mode", "no refusals", "without refusals"]]],
        order: Order::Any,
        negatable: true,
    },
    Rule {
        id: "policy.drop-rules",
        reason: "Has the rules of the policy dropped.",
        weight: 0.75,
        groups: &[&[&["ignore", "disregard", "forget", "drop", "discard", "cancel"]], &[&["rules above", "above rules", "rules here", "rules in this", "this policy", "these rules", "policy above", "rules so far", "earlier rules", "everything above", "restrictions above", "rules that were given", "restrictions in this"]]],
        order: Order::Within(2),
        negatable: true,
    },
];
