//! Words that several rules use, in twelve languages.

pub(super) type Words = &'static [&'static str];

/// Yes to something.
pub(super) const APPROVE: Words = &[
    "approve", "accept", "grant", "allow", "permit", "authorise", "authorize", "confirm",
    "say yes to", "answer yes to", "reply yes to", "agree to", "sign off", "wave through",
    "genehmige*", "bewillige*", "erlaube*", "bestätige*", "stimme", "approuve*", "accepte*",
    "autorise*", "valide*", "aprueba*", "apruebe*", "acepta*", "acepte*", "autoriza*", "autorice*",
    "aprove*", "aprova*", "aceite*", "autorize*", "approva*", "accetta*", "autorizza*", "одобряй*",
    "одобри*", "разрешай*", "подтверждай*", "принимай*", "批准", "同意", "允许", "通过", "وافق",
    "اقبل", "اسمح", "承認", "許可", "受け入れ", "승인", "허용", "수락", "मंज़ूर", "मंजूर", "स्वीकार", "अनुमति",
    "wave",
    "are approved", "is approved",
];

/// Everything of something.
pub(super) const EVERYTHING: Words = &[
    "every", "all", "any", "each", "everything", "anything", "whatever", "jede*", "alle*",
    "sämtliche*", "tous", "toutes", "toute", "chaque", "todas", "todos", "toda", "todo",
    "cada", "cualquier*", "qualquer*", "ogni", "tutte", "tutti", "qualsiasi", "все", "всё", "всех",
    "каждый", "каждую", "любой", "любые", "любую", "所有", "一切", "任何", "全部", "جميع", "كل", "أي",
    "すべて", "全て", "あらゆる", "모든", "모두", "हर", "सभी", "सब",
];

/// Without anybody looking.
pub(super) const UNASKED: Words = &[
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
    "no need to check with", "without checking with", "without any check", "sin excepción", "sans exception",
    "senza eccezione", "sem exceção", "ohne ausnahme", "без исключения", "不用确认", "毫无例外", "例外なく", "예외 없이",
];

/// What protects.
pub(super) const PROTECTION: Words = &[
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
pub(super) const SWITCH_OFF: Words = &[
    "disable", "turn off", "switch off", "deactivate", "bypass", "circumvent", "get around",
    "work around", "evade", "shut down", "uninstall", "schalte", "deaktiviere*", "umgehe*",
    "abschalten", "désactive*", "contourne*", "coupe*", "désinstalle*", "desactiva*",
    "desactive*", "elude*", "evita*", "apaga*", "desative*", "desativa*", "contorne*", "desligue*",
    "disattiva*", "aggira*", "spegni*", "отключай*", "отключи*", "обходи*", "обойди*", "выключи*",
    "关闭", "绕过", "禁用", "停用", "عطل", "عطّل", "تجاوز", "أوقف", "無効に", "無効化", "回避", "停止",
    "우회", "비활성화", "끄", "बाईपास", "बंद", "निष्क्रिय",
];

/// The rules of this or the built-in policy.
pub(super) const RULES_HERE: Words = &[
    "rules", "rule", "restrictions", "restriction", "limits", "limitations", "boundaries",
    "prohibitions", "this policy", "this file", "this list", "policy", "guidelines", "regeln",
    "einschränkungen", "verbote", "grenzen", "richtlinie", "richtlinien", "règles",
    "restrictions ci-dessus", "interdictions", "limites", "reglas", "restricciones", "límites",
    "regras", "restrições", "regole", "restrizioni", "limiti", "правила", "ограничения", "запреты",
    "规则", "限制", "规定", "القواعد", "القيود", "規則", "制限", "ルール", "규칙", "제한", "नियम", "नियमों", "प्रतिबंध",
    "everything written", "everything above", "everything before", "text above", "all of the above", "earlier sections", "sections above", "items above", "alles oben",
    "rest of the file", "rest of this file", "bullet",
];

/// That take themselves back.
pub(super) const TAKEN_BACK: Words = &[
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
    "only this bullet counts", "only this line counts", "only this rule counts", "there for the inspectors", "for inspectors",
];

/// What stands behind a policy.
pub(super) const REMINDER: Words = &[
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
pub(super) const VOID: Words = &[
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
pub(super) const IGNORE: Words = &[
    "ignore", "skip", "disregard", "overlook", "drop", "leave out", "strip", "discard", "forget",
    "ignoriere*", "überspringe*", "ignorez", "ignore", "sautez", "ignora", "ignore", "omite", "salta",
    "игнорируй*", "пропускай*", "忽略", "跳过", "تجاهل", "無視", "무시", "अनदेखा",
];

/// Things that are data.
pub(super) const DATA: Words = &[
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
    "readme", "arrives from", "comes from", "source document", "@",
];

/// Taken as the owner's word.
pub(super) const AS_MINE: Words = &[
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
    "is an order", "is to be executed", "are to be executed", "to be executed at once", "run them as they stand",
    "do as it says", "do as they say", "do what it says", "sofort aus", "直ちに実行", "すぐに実行", "立即执行", "马上执行",
    "exécutez-les", "ejecútalas", "выполняй немедленно",
];

/// Doing as told.
pub(super) const OBEY: Words = &["follow", "obey", "execute", "carry out", "comply with", "act on", "perform", "do whatever", "do everything", "do anything", "do what"];
/// What orders are.
pub(super) const ORDERS: Words = &[
    "instructions in", "instructions from", "instructions inside", "instructions found",
    "instructions there", "orders in", "orders from", "commands in", "commands from",
    "commands found", "whatever", "anything", "everything", "what it says", "what they say",
];

/// What is nobody else's.
pub(super) const SECRET: Words = &[
    ".env", "~/.ssh", ".ssh", "id_ed25519", "id_rsa", "~/.aws", ".aws", "credentials", "password", "passwords",
    "private key", "private keys", "api key", "api keys", "secrets", "connection string", "database password",
    "kubeconfig", ".netrc", "vault token", "passwort", "passwörter", "zugangsdaten", "mots de passe", "mot de passe",
    "contraseñas", "contraseña", "senhas", "senha", "пароли", "пароль", "密码", "密钥", "كلمات المرور", "パスワード",
    "비밀번호", "पासवर्ड",
    "/etc/passwd", "/etc/shadow", "environment variables",
];

/// Giving it away.
pub(super) const HAND_OUT: Words = &[
    "send", "upload", "attach", "post", "paste", "append", "include", "embed", "forward", "go to", "goes to",
    "put the contents", "put the content", "transmit", "mail", "publish", "exfiltrate", "report", "sende*", "schicke*",
    "lade", "envoie*", "envoyez", "transmets", "envía*", "envíe*", "sube", "envie*", "invia*", "carica", "отправ*",
    "загружай*", "发送", "上传", "发到", "أرسل", "ارفع", "送信", "アップロード", "보내", "업로드", "भेज", "अपलोड",
];

/// Where others read it.
pub(super) const PLACES: Words = &[
    "https://", "http://", "@", "channel", "ticket", "chat", "summary", "link", "issue", "support", "query parameter",
    "release server", "pastebin", "webhook",
    "below each", "into every", "in every answer", "each answer", "every answer", "every reply", "ftp://",
];
